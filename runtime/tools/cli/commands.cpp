#include "runtime/tools/cli/commands.h"
#include "runtime/tools/cli/kept_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/config/registry.h"
#include "runtime/tools/cli/remedy.h"
#include "runtime/tools/cli/run_source.h"
#include "runtime/tools/code/precompiled_header.h"
#include "runtime/tools/report/report.h"
#include "runtime/train/iterator/hook.h"
#include "runtime/train/run/signals.h"

namespace stepop {

std::string Command::usage() const {
  return fmt::format("stepop {}{}{}", name, *operands != 0 ? " " : "", operands);
}

std::span<const Command> commands() {
  static constexpr Command kAll[] = {
      {"config", "-b base.yaml [--path/key value ...] [--keys]", 0, 0,
       "print the resolved config; --keys: each key of it and of its components, with its meaning",
       config_command},
      {"data", "-b base.yaml [SPLIT ...] [--html data.html] [-o data.png] [--examples N]", 0, 100,
       "look at datasets: types, shapes, ranges, time; reads every example and lists the bad ones",
       data_command},
      {"meta", "FOLDER [SPLIT] -b base.yaml", 1, 2,
       "write the examples of a dataset, by default train, as a folder with a meta.yaml, as edflow "
       "has",
       meta_command},
      {"list", "[WORD] [-b base.yaml]", 0, 1,
       "components and their parameters, also of the code in -b; WORD is a part of a name or kind",
       list_command},
      {"new", "NAME [--template KIND] [--project] [--from-edflow FILE ... | --from-dlas FILE]", 1,
       1, "make a folder with a model, a dataset, an iterator and a config to start from",
       new_command},
      {"prepare", "[--clean]", 0, 0,
       "precompile the headers for your own code, so that its first compile is fast; shows what is "
       "kept and how large it is",
       prepare_command},
      {"checkpoints", "logs/<time>_<name>", 1, 1,
       "the checkpoints of a run, with the latest, the best and damaged ones marked",
       checkpoints_command},
      {"eval", "PATH [-c CALLBACK ...] [-b more.yaml] [--CALLBACK/key value ...]", 1, 1,
       "run callbacks on an outputs.h5, an evaluation's folder, or the latest evaluation of a run",
       eval_command},
      {"predict", "RUN [-b new_data.yaml] [-n NAME] [-c CHECKPOINT] [--path/key value ...]", 1, 1,
       "what the network of a run makes of datasets/predict, rows without labels: an outputs.h5",
       predict_command},
      {"export",
       "RUN [-c CHECKPOINT] [--network NAME] [-o net.pt | net.onnx] [--path/key value ...]", 1, 1,
       "write the network of a run for Python and other programs, checked on its data",
       export_command},
      {"runs", "[logs] [--best METRIC] [--where KEY=VALUE] [--json | --csv]", 0, 1,
       "the runs in a folder: state, step, metric, age; -d also lists debug runs", runs_command},
      {"sweep", "sweep.yaml [--jobs N] [--table] [--json | --csv]", 1, 1,
       "train with many values of a config, resume that after a stop, and show the best",
       sweep_command},
      {"tune", "-b base.yaml [--path/key value ...] [--time 2m] [--batch_size | --lr]", 0, 0,
       "measure training steps with other threads, oneDNN, loaders, ...; writes tuned.yaml for -b",
       tune_command},
      {"inspect", "outputs.h5", 1, 1,
       "what is in an outputs.h5 (or its folder, or a run: its newest) or in a .safetensors file",
       inspect_command},
      {"compare", "logs/a logs/b [...]", 2, 100,
       "the differences between the configs of runs, and their metrics side by side",
       compare_command},
      {"report", "logs/<time>_<name> [FILE.html]", 1, 2,
       "one HTML file about a run: curves, pictures, config, evaluations", report_command},
      {"reproduce", "logs/<time>_<name> [--json]", 1, 1,
       "the commands that make a run again, as a script, with what of it is not as it was",
       reproduce_command},
      {"completion", "bash|zsh", 1, 1,
       "print what completes commands, flags, files and keys: eval \"$(stepop completion bash)\"",
       completion_command},
      {"help", "[COMMAND]", 0, 1, "print this text, or the help of one command", help_command},
  };
  return kAll;
}

const Command* find_command(std::string_view name) {
  for (const Command& command : commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

void refuse_config(const Arguments& arguments, const std::string& takes) {
  if (arguments.base.empty() && arguments.overrides.empty()) return;
  throw UsageError(fmt::format("stepop {} takes {} alone: {}", arguments.command->name, takes,
                               arguments.command->usage()));
}

RunDirectory open_run(const Arguments& arguments, const std::string& root) {
  std::error_code failed;
  if (!std::filesystem::is_directory(root, failed)) {
    throw UsageError(
        fmt::format("stepop {}: {}: no such folder; give the folder of a run, "
                    "logs/<time>_<name>{}",
                    arguments.command->name, root, run_near(root)));
  }
  if (!std::filesystem::is_directory(root + "/configs", failed)) {
    throw UsageError(fmt::format("stepop {}: {}: not the folder of a run: it has no configs/{}",
                                 arguments.command->name, root, run_near(root)));
  }
  return RunDirectory::open(root);
}

namespace {

/// Upper and lower case count as the same.
bool has_word(const std::string& text, const std::string& word) {
  const auto is_same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), is_same) != text.end();
}

/// The name of the map that holds a parameter, `augmentations/both`; empty for the component's own.
std::string_view map_of(const Parameter& parameter) {
  const size_t slash = parameter.name.rfind('/');
  return std::string_view(parameter.name).substr(0, slash == std::string::npos ? 0 : slash);
}

/// A line for each; those of a nested map stand together below its name.
std::string parameter_lines(const std::vector<Parameter>& parameters) {
  std::string text;
  std::string_view map;
  size_t width = 14;
  for (const auto& parameter : parameters) {
    const std::string_view parent = map_of(parameter);
    const size_t start = parent.empty() ? 0 : parent.size() + 1;
    if (parent != map && !parent.empty()) {
      text += fmt::format("      {}:\n", parent);
      for (const auto& other : parameters) {
        if (map_of(other) == parent) width = std::max(width, other.name.size() - start);
      }
    }
    map = parent;
    text += fmt::format("      {}{:<{}} {:<14} {}\n", parent.empty() ? "" : "  ",
                        parameter.name.substr(start), width,
                        parameter.default_value.empty() ? "(required)" : parameter.default_value,
                        parameter.about);
  }
  return text;
}

}  // namespace

int list_command(const Arguments& arguments) {
  if (!arguments.base.empty()) {
    load_code(Config(resolve_config(arguments.base, arguments.overrides)), "");
  }
  hooks();  // the one kind of which nothing here is registered, so that nobody has made it
  const std::string word = arguments.operands.empty() ? "" : arguments.operands.front();
  bool is_found = false;
  for (const Catalogue* catalogue : Catalogue::all()) {
    std::string text;
    size_t width = 14;
    for (const auto& registration : catalogue->registrations()) {
      width = std::max(width, registration.name.size());
    }
    for (const auto& registration : catalogue->registrations()) {
      if (!has_word(registration.name, word) &&
          !has_word(fmt::format("{}s", catalogue->kind()), word))
        continue;
      text += fmt::format("  {:<{}} {}\n", registration.name, width, registration.about.summary);
      text += parameter_lines(registration.about.parameters);
    }
    if (catalogue->registrations().empty() && has_word(catalogue->kind() + "s", word)) {
      text = fmt::format(
          "  none is registered; iterators/README.md says how to write a {} of your own\n",
          catalogue->kind());
    }
    is_found = is_found || !text.empty();
    if (word.empty() || !text.empty()) fmt::print("{}s\n{}\n", catalogue->kind(), text);
  }
  if (!is_found && !word.empty()) {
    throw UsageError(
        fmt::format("stepop list {}: no component or kind of component has that in its "
                    "name; `stepop list` shows all",
                    word));
  }
  return 0;
}

int report_command(const Arguments& arguments) {
  refuse_config(arguments, "the folder of a run");
  const RunDirectory run = open_run(arguments, arguments.operands.front());
  const std::string path =
      arguments.operands.size() > 1 ? arguments.operands[1] : run.root() + "/report.html";
  if (std::filesystem::is_directory(path)) {
    throw UsageError(
        fmt::format("stepop report: {}: a folder; give the name of the HTML file to write", path));
  }
  write_report(run, path);
  fmt::print("{} ({})\n", path, size_text(static_cast<double>(std::filesystem::file_size(path))));
  return 0;
}

int prepare_command(const Arguments& arguments) {
  const SignalGuard signals;
  if (!arguments.clean) prepare_precompiled_header(Compiler(throw_if_signal_arrived));
  const std::vector<KeptFiles> kept = kept_files();
  if (!arguments.clean) {
    fmt::print("{}", kept_files_table(kept));
    return 0;
  }
  for (const auto& files : kept) {
    if (files.paths.empty()) continue;
    for (const auto& path : files.paths) {
      std::error_code failed;
      std::filesystem::remove_all(path, failed);
      if (failed) throw Error(fmt::format("cannot remove {}: {}", path, failed.message()));
    }
    fmt::print("removed {}: {}\n", files.what, size_text(files.bytes));
  }
  return 0;
}

}  // namespace stepop
