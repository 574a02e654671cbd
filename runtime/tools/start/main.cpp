#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/log/facts.h"
#include "runtime/core/programs/spawn.h"
#include "runtime/core/system/quick_end.h"
#include "runtime/data/loader.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/cli/command_line.h"
#include "runtime/tools/cli/help.h"
#include "runtime/tools/cli/standard_streams.h"
#include "runtime/tools/code/code_places.h"
#include "runtime/tools/code/compiler.h"
#include "runtime/tools/start/run_command.h"
#include "runtime/train/distributed/world.h"

namespace {

std::terminate_handler usual_terminate = nullptr;

/// LibTorch's constructors throw if there is no memory, before any code can catch the exception.
[[noreturn]] void end_before_main() {
  constexpr std::string_view kText =
      "stepop: LibTorch cannot be loaded: there is not enough memory; ulimit -v shows the limit of "
      "this shell\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(1);
}

__attribute__((no_sanitize("address", "thread", "undefined"))) void begin(int /*argc*/,
                                                                          char** /*argv*/,
                                                                          char** /*environment*/) {
  usual_terminate = std::set_terminate(end_before_main);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const kFirst)(int, char**, char**) = begin;

/// Adds how the command is called to an error in its words.
stepop::CommandLine read_words(const std::vector<std::string>& words) {
  try {
    return stepop::parse_command_line(words);
  } catch (const stepop::UsageError& error) {
    const stepop::CommandInfo* command = words.empty() ? nullptr : stepop::find_command(words[0]);
    if (command == nullptr || words[0] == "help") throw;
    throw stepop::UsageError(fmt::format("{}\n{}; `stepop {} --help` has more", error.what(),
                                         command->usage(), command->name));
  }
}

int fail(const std::string& message, int exit_code) {
  stepop::say_fact("error", message);
  return stepop::print_failure(message, exit_code);
}

int run(int argc, char** argv) {
  using stepop::CommandLine;
  stepop::open_standard_streams();
  ::signal(SIGXFSZ, SIG_IGN);  // `write` then fails with a message for a file that may not grow
  if (argc > 0 && *argv[0] != 0) stepop::set_program_name(argv[0]);
  try {
    stepop::Catalogue::check();
    const CommandLine line = read_words(std::vector<std::string>(argv + 1, argv + argc));
    const stepop::Arguments& arguments = line.arguments;
    if (arguments.version) {
      fmt::print("{}", stepop::version_text());
      return stepop::finish_output(0);
    }
    if (arguments.help) {
      fmt::print("{}", arguments.command != nullptr ? stepop::help_text(*arguments.command)
                                                    : stepop::help_text());
      return stepop::finish_output(0);
    }
    if (line.command) return stepop::finish_output(line.command->run(arguments));
    return stepop::run_command(arguments);
  } catch (const stepop::CompileError& error) {
    std::fputs(error.what(), stderr);  // the compiler's own message
    return error.exit_code();
  } catch (const stepop::Error& error) {
    return fail(stepop::with_places(error.what(), error.exit_code()), error.exit_code());
  } catch (const std::system_error& error) {
    return fail(stepop::system_error_text(error), 1);
  } catch (const std::exception& error) {
    return fail(stepop::with_places(stepop::error_text(error), 1), 1);
  } catch (...) {
    return fail(stepop::with_places(stepop::text_of_current_exception(), 1), 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  stepop::end_quickly();
  stepop::follow_parent();
  std::set_terminate(usual_terminate);
  const int exit_code = run(argc, argv);
  if (stepop::Loader::workers_left_behind() == 0 && !stepop::World::is_broken()) return exit_code;
  // A dataset that hangs, or another process, must not keep a run from ending after everything was
  // saved.
  std::fflush(nullptr);
  _exit(exit_code);
}
