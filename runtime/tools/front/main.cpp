// The program that users call. What needs no tensor it does itself, as loading LibTorch takes two
// tenths of a second; for everything else it becomes the whole program, `cli/main.cpp`.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/cli/command_line.h"
#include "runtime/tools/cli/standard_streams.h"
#include "runtime/tools/front/library_folders.h"
#include "runtime/tools/front/made_texts.h"
#include "runtime/tools/front/needs_libtorch.h"
#include "runtime/train/run/thread_wait.h"

namespace stepop {
namespace {

/// The exit code of a command line that needs no LibTorch; nothing, and nothing was printed, for
/// all others.
std::optional<int> run_without_libtorch(const std::vector<std::string>& words) {
  std::string joined;
  for (const auto& word : words) joined += word + '\n';
  for (const MadeText* made = kMadeTexts; made->words != nullptr; ++made) {
    if (joined != made->words) continue;
    fmt::print("{}", made->text);
    return finish_output(0);
  }
  if (words.empty() || find_command(words[0]) == nullptr) return std::nullopt;
  std::optional<CommandLine> line;
  try {
    line = parse_command_line(words);
  } catch (const Error&) {
    return std::nullopt;  // the whole program knows the flags of all commands
  }
  if (line->arguments.help || line->arguments.version) return std::nullopt;
  try {
    return finish_output(line->command->run(line->arguments));
  } catch (const NeedsLibTorch&) {
    return std::nullopt;
  }
}

std::optional<int> run(int argc, char** argv) {
  open_standard_streams();
  ::signal(SIGXFSZ, SIG_IGN);
  if (argc > 0 && *argv[0] != 0) set_program_name(argv[0]);
  try {
    return run_without_libtorch(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const Error& error) {
    return print_failure(error.what(), error.exit_code());
  } catch (const std::system_error& error) {
    return print_failure(system_error_text(error), 1);
  } catch (const std::exception& error) {
    return print_failure(error_text(error), 1);
  }
}

/// Why MKL, which asks for the path of the current folder, would end the whole program while it is
/// loaded; nothing if it does not.
std::optional<std::string> trouble_with_folder() {
  std::array<char, 4096> path{};
  if (::getcwd(path.data(), path.size()) != nullptr) return std::nullopt;
  if (errno == ENOENT) return "the current folder was removed: cd to another one";
  if (errno == ERANGE || errno == ENAMETOOLONG) {
    return fmt::format(
        "the path of the current folder has more than {} bytes, with which LibTorch "
        "does not start: cd to another one",
        path.size() - 1);
  }
  return fmt::format("the current folder has no path: {}: cd to another one",
                     std::generic_category().message(errno));
}

/// Becomes the whole program. It lies beside libstepop.so, and is found as the system would find
/// that library, so that an installation can be moved.
int become_whole_program(char** argv) {
  if (const auto trouble = trouble_with_folder()) return print_failure(*trouble, 2);
  set_default_thread_wait();
  for (const auto& folder : library_folders()) {
    ::execv(fmt::format("{}/stepop_program/stepop", folder).c_str(), argv);
    if (errno != ENOENT && errno != ENOTDIR) break;
  }
  return print_failure(fmt::format("stepop_program/stepop cannot be run: {}: install stepop again",
                                   std::generic_category().message(errno)),
                       127);
}

}  // namespace
}  // namespace stepop

int main(int argc, char** argv) {
  const std::optional<int> exit_code = stepop::run(argc, argv);
  return exit_code ? *exit_code : stepop::become_whole_program(argv);
}
