#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <vector>

namespace stepop {

/// The places in the user's own code that an exception passed: the file and line of each function,
/// the innermost first. libstepop.so stands before the C++ library where exceptions are thrown, and
/// notes which return addresses on the stack lie in libraries that were loaded as the user's.

/// From here on the addresses of the library at `path`, which is loaded, are the user's. `files`
/// are its sources and headers as they are known here: a library of the cache may have been
/// compiled where they lay before.
void add_user_library(const std::string& path, const std::vector<std::string>& files);

/// Two lines or more, the first of them empty, to be put behind what the exception says:
///
///     in your own code:
///       denoiser.cpp:31: in DenoiserNetwork::forward
///       denoiser.cpp:57: in Denoiser::step_op
///
/// Of an exception that was thrown while another one was handled they are those of the other one.
/// Empty for an exception that did not come out of the user's code, and where `addr2line`
/// (binutils) is not there. Lines need debug information, which `compile_code` asks for.
std::string places_of(const std::exception_ptr& exception);

/// What is said of the exception that is being handled, with its places unless `text` has them. Not
/// of a mistake in a config or of a signal, which have an exit code of their own.
std::string with_places(const std::string& text, int exit_code);

/// What is needed to look them up in a signal handler: no memory is allocated there.
struct UserLibrary {
  const char* path;
  size_t begin, end;  ///< Its addresses.
  size_t offset;      ///< What to subtract from an address for `addr2line -e path`.
};
inline constexpr size_t kMostUserLibraries = 16;
/// Those that were added, with an empty path behind the last one.
const UserLibrary* user_libraries();

/// Writes the return addresses on the stack of this thread that lie in the user's libraries, the
/// innermost first, and returns how many there are. May be called in a signal handler.
size_t user_frames(void** addresses, size_t most);

/// The path of `addr2line`, or empty.
const std::string& addr2line_path();

}  // namespace stepop
