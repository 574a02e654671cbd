#include "runtime/tools/tune/tune_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

/// Reads until the last one that holds the other end of its input is gone. Trainings that die at
/// the same moment may still write.
constexpr const char* kSweep =
    "exec >/dev/null 2>&1; read -r nothing; for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- \"$1\"; "
    "[ -e \"$1\" ] || exit 0; sleep 0.2; done";

}  // namespace

TuneFolder::TuneFolder() {
  std::string name = std::filesystem::temp_directory_path().string() + "/stepop-tune-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw Error(fmt::format("cannot make a temporary folder {}: {}", name,
                            std::generic_category().message(errno)));
  }
  path_ = name;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error("cannot make a pipe");
  const OpenFile waits(ends[0]);
  alive_ = OpenFile(ends[1]);
  shell_ = ::fork();
  if (shell_ != 0) return;
  // From here on only what may be called while other threads hold locks. No signal of the terminal
  // reaches it.
  ::setsid();
  ::dup2(waits.number(), STDIN_FILENO);
  for (const int number : {SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  ::execl("/bin/sh", "sh", "-c", kSweep, "sh", path_.c_str(), nullptr);
  ::_exit(127);
}

TuneFolder::~TuneFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  alive_.close();
  if (shell_ > 0) ::waitpid(shell_, nullptr, 0);
}

}  // namespace stepop
