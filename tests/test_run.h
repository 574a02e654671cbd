#pragma once

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/log/console.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/loop/reporter.h"
#include "runtime/train/loop/training_loop.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/session/session.h"
#include "tests/scratch_folder.h"

namespace stepop {

inline Config test_config(const std::string& yaml) {
  return Config(parse_yaml(yaml, {"test.yaml", 0}));
}

/// A training in a folder of its own: what `stepop -t` does, without a process, a console, and the
/// preflight, which `session.check()` runs.
class TestRun {
 public:
  explicit TestRun(const std::string& yaml)
      : folder_(std::make_shared<ScratchFolder>()),
        directory_(RunDirectory::create(folder_->path(), "2026-11-21T10-00-00", "test")),
        session(test_config(yaml), /*train=*/true, /*debug=*/false, /*allow_unknown=*/false) {}

  /// Goes on with `before`, in its folder, from its checkpoint of `step`.
  TestRun(const std::string& yaml, const TestRun& before, int64_t step)
      : TestRun(yaml, before, load_checkpoint(before.checkpoint_path(step))) {}

  /// The same from a checkpoint that is no file.
  TestRun(const std::string& yaml, const TestRun& before, const Checkpoint& checkpoint)
      : folder_(before.folder_),
        directory_(before.directory_),
        session(test_config(yaml), true, false, false) {
    session.resume(checkpoint, checkpoint_path(checkpoint.progress.global_step));
  }

  /// `log_file` gets what the training says.
  StopReason train(const std::vector<Hook*>& hooks = {}, const std::string& log_file = "") {
    Console console(log_file.empty() ? LogLevel::kCritical : LogLevel::kInfo);
    if (!log_file.empty()) console.open_log_file(log_file);
    session.show_log(console);
    session.set_run({root(), "test", session.position().global_step > 0});
    session.initialize();
    Reporter reporter(console, directory_, session.settings(),
                      session.context().splits.order("train").batches_per_epoch());
    TrainingLoop loop(session, directory_, reporter,
                      {.time = "2026-11-21T10-00-00", .git = "none"});
    for (Hook* hook : hooks) loop.add_hook(*hook);
    return loop.run();
  }

  const std::string& root() const { return directory_.root(); }
  std::string checkpoint_path(int64_t step) const {
    return directory_.checkpoints() + "/" + checkpoint_name(step);
  }
  std::vector<int64_t> checkpoints() const { return checkpoint_steps(directory_.checkpoints()); }
  State checkpoint(int64_t step) const { return load_checkpoint(checkpoint_path(step)).tensors; }

  /// The lines of metrics.jsonl.
  std::vector<nlohmann::json> metrics() const {
    std::ifstream file(directory_.metrics_file());
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

 private:
  std::shared_ptr<ScratchFolder> folder_;
  RunDirectory directory_;

 public:
  Session session;
};

}  // namespace stepop
