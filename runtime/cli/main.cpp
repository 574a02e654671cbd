#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "runtime/cli/commands.h"
#include "runtime/error_text.h"
#include "runtime/registry.h"

int main(int argc, char** argv) {
  using stepop::Arguments;
  try {
    stepop::Catalogue::check();
    const Arguments arguments =
        stepop::parse_arguments(std::vector<std::string>(argv + 1, argv + argc));
    switch (arguments.command) {
      case Arguments::Command::kHelp:
        fmt::print("{}", stepop::help_text());
        return 0;
      case Arguments::Command::kVersion:
        fmt::print("{}", stepop::version_text());
        return 0;
      case Arguments::Command::kList:
        stepop::list_command();
        return 0;
      case Arguments::Command::kConfig:
        stepop::config_command(arguments);
        return 0;
      case Arguments::Command::kRun:
        return stepop::run_command(arguments);
    }
  } catch (const stepop::Error& error) {
    fmt::print(stderr, "stepop: {}\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "stepop: {}\n", stepop::error_text(error));
    return 1;
  }
}
