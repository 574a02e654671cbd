#include "runtime/tools/reproduce/reproduction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/config/references.h"
#include "runtime/core/value/value.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/code/code_copy.h"
#include "runtime/tools/reproduce/start_chain.h"
#include "runtime/tools/reproduce/what_differs.h"
#include "runtime/tools/start/run_starts.h"
#include "runtime/train/run/git_tree.h"
#include "runtime/train/run/machine.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/run_lock.h"
#include "runtime/train/run/run_summary.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

bool is_on(const Value& config, const char* key) {
  const Value* value = config.find(key);
  return value != nullptr && *value == Value(true);
}

bool has_value(const Value& config, const char* key) {
  const Value* value = config.find(key);
  return value != nullptr && !value->is_null();
}

/// A one-line comment in the script, whatever the run's files contain: a line break would end the
/// comment, and the shell would run the rest.
std::string comment(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return "# " + text;
}

std::string short_commit(const std::string& commit) { return commit.substr(0, 10); }

class Plan {
 public:
  explicit Plan(const RunDirectory& run)
      : root_(RunDirectory::at(fs::absolute(run.root()).string()).root()),
        run_(RunDirectory::at(root_)),
        trainings_(trainings_of(run_)),
        evaluations_(evaluations_of(run_)) {
    result_.run = run.root();
  }

  Reproduction make() {
    std::vector<std::string> unknown;
    const std::vector<ChainedStart> chain = chain_of_trainings(root_, trainings_, unknown);
    for (auto& problem : unknown) say(std::move(problem));
    look_at_starts(chain);
    add_code(chain);
    for (size_t i = 0; i < chain.size(); ++i) {
      add_training(chain[i], i, i + 1 < chain.size() ? &chain[i + 1] : nullptr);
    }
    for (const auto& start : evaluations_) add_evaluation(start);
    return std::move(result_);
  }

 private:
  void say(std::string problem) {
    auto& all = result_.problems;
    if (std::find(all.begin(), all.end(), problem) == all.end()) all.push_back(std::move(problem));
  }

  /// Finds the differences for all starts that are repeated.
  void look_at_starts(const std::vector<ChainedStart>& chain) {
    std::vector<const KnownStart*> starts;
    for (const auto& link : chain) starts.push_back(link.start);
    for (const auto& start : evaluations_) starts.push_back(&start);
    if (starts.empty()) say("no start of the run left a config in configs/");
    for (const auto* start : starts) {
      for (auto& problem : what_differs(root_, *start)) say(std::move(problem));
    }
  }

  /// Adds the git working trees as they were at the very first start.
  void add_code(const std::vector<ChainedStart>& chain) {
    const KnownStart* first = !chain.empty()          ? chain.front().start
                              : !evaluations_.empty() ? &evaluations_.front()
                                                      : nullptr;
    if (first == nullptr || !first->record) return;
    Reproduction::Part part;
    int number = 0;
    for (const auto& tree : first->record->git) {
      const std::string folder = ++number == 1 ? "source" : fmt::format("source_{}", number);
      add_tree(tree, folder, *first, part.lines);
    }
    for (const auto& link : chain) {
      if (!link.start->record || link.start == first) continue;
      for (const auto& tree : link.start->record->git) {
        const auto& before = first->record->git;
        const bool is_same = std::any_of(before.begin(), before.end(), [&](const GitTree& other) {
          return other.folder == tree.folder && other.commit == tree.commit &&
                 other.patch_checksum == tree.patch_checksum;
        });
        if (is_same) continue;
        say(fmt::format("the start at {} had {} at {}{}, other than the first one",
                        link.start->time, tree.folder, short_commit(tree.commit),
                        tree.patch.empty() ? "" : fmt::format(" with {}", patch_of(tree))));
      }
    }
    if (!part.lines.empty()) result_.parts.push_back(std::move(part));
  }

  std::string patch_of(const GitTree& tree) const { return run_.configs() + "/" + tree.patch; }

  void add_tree(const GitTree& tree, const std::string& folder, const KnownStart& start,
                std::vector<std::string>& lines) const {
    if (tree.commit.empty()) return;
    const bool is_there = has_commit(tree.folder, tree.commit);
    const auto add = [&](std::string line) {
      lines.push_back(is_there ? std::move(line) : comment(std::move(line)));
    };
    lines.push_back(comment(
        fmt::format("the source as it was: {} at {}{}", tree.folder, short_commit(tree.commit),
                    tree.patch.empty() ? "" : ", with what was not committed")));
    add(fmt::format("git clone --quiet --shared --no-checkout {} {}", shell_word(tree.folder),
                    folder));
    add(fmt::format("git -C {} checkout --quiet --detach {}", folder, shell_word(tree.commit)));
    std::error_code failed;
    const bool has_patch = fs::exists(patch_of(tree), failed);
    if (!tree.patch.empty() && has_patch) {
      add(fmt::format("git -C {} apply --whitespace=nowarn {}", folder,
                      shell_word(patch_of(tree))));
    }
    const std::string& program = start.record->program;
    if (!program.starts_with(tree.folder + "/")) return;
    lines.push_back(
        comment(fmt::format("{} was built from it; build it there to have that program", program)));
  }

  void add_training(const ChainedStart& link, size_t number, const ChainedStart* next) {
    const KnownStart& start = *link.start;
    Reproduction::Part part{.time = start.time, .lines = {}};
    if (number > 0) add_run_variable();
    add_title(start, part.lines);
    if (!link.also.empty()) {
      part.lines.push_back(comment(
          fmt::format("it was resumed with the same config at {}: one training has the same bits",
                      fmt::join(link.also, ", "))));
    }
    add_environment(start, part.lines);
    std::string line = program_word();
    line += number == 0 ? " -n " + shell_word(run_.run_name()) : " -p \"$run\"";
    line += " -b " + shell_word(start.config_file) + " -t";
    const bool is_from_checkpoint =
        number == 0 && start.record && !start.record->checkpoint.empty();
    if (is_from_checkpoint) {
      line += " -c " + shell_word(start.record->checkpoint);
      if (start.record->kind == "weights") line += " -r";
    }
    line += common_flags(start);
    if (has_value(start.config, "max_time")) line += " --max_time null";
    add_end(start, next, line, part.lines);
    part.lines.push_back(line);
    result_.parts.push_back(std::move(part));
  }

  /// Adds the end of a training: the begin of the next training in the chain, or the run's own end.
  void add_end(const KnownStart& start, const ChainedStart* next, std::string& line,
               std::vector<std::string>& lines) {
    std::optional<int64_t> end;
    if (next != nullptr) {
      if (next->begin > 0) end = next->begin;
    } else {
      const RunSummary summary = summarize_run(root_);
      if (summary.status.state == RunState::kRunning) {
        say("the run is still training: the commands make it to its end");
      } else if (summary.status.state != RunState::kEnded && summary.step && *summary.step > 0) {
        end = summary.step;
        lines.push_back(fmt::format("# the run {} after step {}; without --stop_at it trains on",
                                    state_text(summary.status.state),
                                    with_thousands(*summary.step)));
      }
    }
    if (end) {
      line += fmt::format(" --stop_at {}", *end);
    } else if (has_value(start.config, "stop_at")) {
      line += " --stop_at null";
    }
  }

  static const char* state_text(RunState state) {
    return state == RunState::kKilled    ? "was killed"
           : state == RunState::kFailed  ? "failed"
           : state == RunState::kStopped ? "was stopped"
                                         : "was left";
  }

  void add_evaluation(const KnownStart& start) {
    if (!start.problem.empty()) {
      say(fmt::format("the config of the evaluation at {} cannot be read: {}", start.time,
                      start.problem));
      return;
    }
    Reproduction::Part part{.time = start.time, .lines = {}};
    const bool is_in_run = !trainings_.empty();
    if (is_in_run) add_run_variable();
    add_title(start, part.lines);
    add_environment(start, part.lines);
    std::string line = program_word();
    line += is_in_run ? std::string(" -p \"$run\"") : " -n " + shell_word(run_.run_name());
    line += " -b " + shell_word(start.config_file);
    const std::string from = start.record ? start.record->checkpoint : "";
    if (is_on(start.config, "eval_all") || is_on(start.config, "eval_forever")) {
      line += " --eval_all true --eval_forever false";
    } else if (from.starts_with('/')) {
      line += " -c " + shell_word(from);
    } else if (start.step) {
      line += fmt::format(" -c {}", *start.step);
    } else {
      say(
          fmt::format("which checkpoint the evaluation at {} took is not known: below, it is the "
                      "newest",
                      start.time));
    }
    line += common_flags(start);
    part.lines.push_back(line);
    result_.parts.push_back(std::move(part));
  }

  static std::string program_word() {
    const std::string& name = program_name();
    const bool is_path = name.find('/') != std::string::npos;
    return shell_word(is_path ? fs::absolute(name).lexically_normal().string() : name);
  }

  static void add_title(const KnownStart& start, std::vector<std::string>& lines) {
    std::string title = start.time;
    if (start.step.value_or(0) > 0) title += fmt::format(", step {}", with_thousands(*start.step));
    if (start.record && start.record->kind == "change") {
      title += ": the config was changed while it trained";
    } else if (!start.command.empty()) {
      title += ": " + start.command;
    }
    lines.push_back(comment(title));
    if (start.record && !start.record->folder.empty()) {
      lines.push_back(comment("in " + start.record->folder));
    }
    if (!start.git.empty()) lines.push_back(comment("git: " + start.git));
  }

  std::string common_flags(const KnownStart& start) {
    std::string flags;
    if (start.record && start.record->is_debug) flags += " -d";
    if (start.record && start.record->allows_unknown) flags += " --allow-unknown";
    if (start.record && start.record->processes > 1) {
      flags += fmt::format(" --processes {}", start.record->processes);
    }
    const std::string threads = threads_flag(start);
    return flags + threads + code_flag(start);
  }

  /// The run's own copy of the code, even if the originals have changed.
  std::string code_flag(const KnownStart& start) {
    const Value* code = start.config.find("code");
    if (code == nullptr || code->is_null()) return "";
    const CodeCopy copy(root_, start.time);
    const Value::List files = code->is_list() ? code->as_list() : Value::List{*code};
    Value::List found;
    for (const auto& file : files) {
      if (!file.is_text()) return "";
      found.push_back(copy.find(file.as_text()));
      std::error_code failed;
      if (found.back() == file && !fs::exists(file.as_text(), failed)) {
        say(fmt::format("code: {} is gone, and the run has no copy of it", file.as_text()));
      }
    }
    return " --code " + shell_word(flow_yaml(escape_references(found)));
  }

  /// The flag for a number of threads that only the machine determined.
  static std::string threads_flag(const KnownStart& start) {
    if (!start.record || has_value(start.config, "num_threads")) return "";
    for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
      if (start.record->environment.contains(name)) return "";
    }
    const auto threads = threads_of(*start.record);
    return threads ? fmt::format(" --num_threads {}", *threads) : "";
  }

  /// Sets the start's environment variables, unless the script has already set them.
  void add_environment(const KnownStart& start, std::vector<std::string>& lines) {
    if (!start.record) return;
    const auto is_for_bits = [](std::string_view name) {
      return matters_in_environment(name) && name != "LANG" && name != "LC_ALL" && name != "TZ" &&
             name != "STEPOP_CACHE" && name != "OMP_WAIT_POLICY" && name != "GOMP_SPINCOUNT";
    };
    std::vector<std::string> hidden;
    OrderedMap<std::string> wanted;
    for (const auto& [name, value] : start.record->environment) {
      if (is_for_bits(name)) wanted.set(name, value);
    }
    if (!environment_) environment_ = environment_that_matters(hidden);
    std::string exports;
    std::string unsets;
    for (const auto& [name, value] : wanted) {
      const std::string* now = environment_->find(name);
      // A variable that is set here by chance may be missing where the script runs.
      if (now != nullptr && *now == value && has_set_environment_) continue;
      exports += " " + name + "=" + shell_word(value);
    }
    for (const auto& [name, value] : *environment_) {
      if (is_for_bits(name) && !wanted.contains(name)) unsets += " " + name;
    }
    if (!unsets.empty()) lines.push_back("unset" + unsets);
    if (!exports.empty()) lines.push_back("export" + exports);
    environment_ = std::move(wanted);
    has_set_environment_ = true;
  }

  /// Finds the new run's folder, whose name begins with another time.
  void add_run_variable() {
    if (std::exchange(has_run_variable_, true)) return;
    const bool is_debug = fs::path(root_).parent_path().filename() == "debug_runs";
    result_.parts.push_back(
        {.time = "",
         .lines = {fmt::format("run=$(ls -d logs/{}*_{} | tail -n 1)",
                               is_debug ? "debug_runs/" : "", shell_word(run_.run_name()))}});
  }

  std::string root_;
  RunDirectory run_;
  std::vector<KnownStart> trainings_;
  std::vector<KnownStart> evaluations_;
  std::optional<OrderedMap<std::string>> environment_;  ///< As left by the script so far.
  bool has_set_environment_ = false;
  bool has_run_variable_ = false;
  Reproduction result_;
};

}  // namespace

Reproduction plan_reproduction(const RunDirectory& run) { return Plan(run).make(); }

std::string Reproduction::script() const {
  std::string text =
      comment(fmt::format(
          "Makes {} again, as a new run in logs/ of the folder in which bash runs this.", run)) +
      "\n";
  if (problems.empty()) {
    text += "# Nothing that it depends on is known to differ: the bits are the same.\n";
  } else {
    text += "# What cannot be had, or is not as it was:\n";
    for (const auto& problem : problems) text += comment("- " + problem) + "\n";
  }
  text += "set -e\n";
  for (const auto& part : parts) {
    text += "\n";
    for (const auto& line : part.lines) text += line + "\n";
  }
  return text;
}

}  // namespace stepop
