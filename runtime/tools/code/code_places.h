#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// The places in the user's own code that an exception passed: the file and line of each function,
/// innermost first. libstepop.so overrides the C++ library's functions that throw exceptions, and
/// notes the return addresses on the stack that belong to user libraries.

/// Marks the addresses of the loaded library at `path` as the user's. `files` are its sources and
/// headers by their current paths: a cached library may have been compiled from other paths.
void add_user_library(const std::string& path, const std::vector<std::string>& files);

/// At least two lines, the first of them empty, to be appended to the exception's text:
///
///     in your own code:
///       denoiser.cpp:31: in DenoiserNetwork::forward
///       denoiser.cpp:57: in Denoiser::step_op
///
/// For an exception that was thrown while another was handled, these are the places of the other.
/// Empty for an exception that did not pass the user's code, and without `addr2line` (binutils).
/// Line numbers need debug information, which `compile_code` requests.
std::string places_of(const std::exception_ptr& exception);

/// The text of the current exception, with its places unless `text` has them. Errors in a config
/// and signals, which have their own exit codes, get no places.
std::string with_places(const std::string& text, int exit_code);

/// The data for a look-up in a signal handler, which must not allocate memory.
struct UserLibrary {
  const char* path;
  size_t begin, end;  ///< The range of its addresses.
  size_t offset;      ///< Subtracted from an address for `addr2line -e path`.
};
inline constexpr size_t kMostUserLibraries = 16;
/// The added libraries; an empty path follows the last.
const UserLibrary* user_libraries();

/// Writes the return addresses on this thread's stack that are in the user's libraries, innermost
/// first, and returns their number. May be called in a signal handler.
size_t user_frames(void** addresses, size_t most);

/// Whether a path, as addr2line writes it, is of a header of the system, LibTorch or stepop. May be
/// called in a signal handler, once a library was added.
bool is_path_of_others(std::string_view path);

/// Writes `Denoiser::step_op` for the symbol `Denoiser::step_op(stepop::Batch const&)::{lambda()#1}
/// ::operator()() const` into `out`, of `symbol.size()` or more; returns how much. May be called in
/// a signal handler.
size_t shorten_symbol(std::string_view symbol, char* out);

/// The path of `addr2line`, or empty.
const std::string& addr2line_path();

}  // namespace stepop
