#include "runtime/cli/commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cli/run_source.h"
#include "runtime/code/precompiled_header.h"
#include "runtime/config/registry.h"
#include "runtime/config/yaml_writer.h"
#include "runtime/run/signals.h"

namespace stepop {

std::string Command::usage() const {
  return fmt::format("stepop {}{}{}", name, *operands != 0 ? " " : "", operands);
}

std::span<const Command> commands() {
  static constexpr Command kAll[] = {
      {"config", "-b base.yaml [--path/key value ...]", 0, 0, "the resolved config",
       config_command},
      {"list", "[-b base.yaml]", 0, 0,
       "every component and its parameters; with a config those of its own code as well",
       list_command},
      {"new", "NAME [--template KIND] [--project]", 1, 1,
       "a folder to begin with: a model, a dataset and an iterator of your own, and a config",
       new_command},
      {"prepare", "", 0, 0,
       "precompile the headers for code of your own, so that its first compile is fast",
       prepare_command},
      {"checkpoints", "logs/<time>_<name>", 1, 1,
       "the checkpoints of a run: which is the latest, the best, damaged", checkpoints_command},
      {"eval", "PATH [-c CALLBACK ...] [--CALLBACK/key value ...]", 1, 1,
       "callbacks over the outputs.h5, the evaluation or the latest one of the run at PATH",
       eval_command},
      {"runs", "[logs]", 0, 1,
       "the runs in a folder: state, step, metric, age; -d: those of -d as well", runs_command},
      {"inspect", "outputs.h5", 1, 1,
       "what is in the outputs of an evaluation (file, its folder, or a run: its newest), or in a "
       ".safetensors",
       inspect_command},
      {"compare", "logs/a logs/b [...]", 2, 100,
       "what differs in the configs of runs, and their metrics side by side", compare_command},
      {"report", "logs/<time>_<name> [FILE.html]", 1, 2,
       "one HTML file about a run: curves, pictures, config, evaluations", report_command},
      {"help", "", 0, 0, "this text", help_command},
  };
  return kAll;
}

const Command* find_command(std::string_view name) {
  for (const Command& command : commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

int config_command(const Arguments& arguments) {
  if (arguments.base.empty()) {
    throw UsageError("stepop config: no config given: -b base.yaml");
  }
  const Config config(resolve_config(arguments.base, arguments.overrides));
  load_code(config, "");
  make_paths_absolute(config);
  fmt::print("{}", to_yaml(escape_references(*config.peek())));
  return 0;
}

int list_command(const Arguments& arguments) {
  if (!arguments.base.empty()) {
    load_code(Config(resolve_config(arguments.base, arguments.overrides)), "");
  }
  for (const Catalogue* catalogue : Catalogue::all()) {
    fmt::print("{}s\n", catalogue->kind());
    size_t width = 14;
    for (const auto& registration : catalogue->registrations()) {
      width = std::max(width, registration.name.size());
    }
    for (const auto& registration : catalogue->registrations()) {
      fmt::print("  {:<{}} {}\n", registration.name, width, registration.about.summary);
      for (const auto& parameter : registration.about.parameters) {
        const std::string value =
            parameter.default_value.empty() ? "(required)" : parameter.default_value;
        fmt::print("      {:<14} {:<14} {}\n", parameter.name, value, parameter.about);
      }
    }
    fmt::print("\n");
  }
  return 0;
}

int prepare_command(const Arguments&) {
  const SignalGuard signals;
  prepare_precompiled_header(Compiler(throw_if_signal_arrived));
  return 0;
}

int help_command(const Arguments& arguments) {
  const bool is_of_one = arguments.command != nullptr && arguments.command->run != help_command;
  fmt::print("{}", is_of_one ? help_text(*arguments.command) : help_text());
  return 0;
}

}  // namespace stepop
