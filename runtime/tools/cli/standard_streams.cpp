#include "runtime/tools/cli/standard_streams.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "runtime/core/base/error.h"
#include "runtime/core/base/shown_text.h"

namespace stepop {

void open_standard_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) == -1) ::open("/dev/null", O_RDWR);  // takes the lowest number
  }
}

int finish_output(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  throw Error("cannot write to the standard output: " + std::generic_category().message(errno));
}

std::string system_error_text(const std::system_error& error) {
  const auto* of_file = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  const std::string what =
      of_file != nullptr ? "use " + of_file->path1().string() : "write to the standard output";
  return "cannot " + what + ": " + error.code().message();
}

int print_failure(const std::string& message, int exit_code) {
  std::fputs(("stepop: " + shown_text(message) + "\n").c_str(), stderr);
  return exit_code;
}

}  // namespace stepop
