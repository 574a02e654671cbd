#include "runtime/tools/start/opening.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "runtime/core/base/number_text.h"
#include "runtime/core/log/facts.h"
#include "runtime/core/system/folders.h"
#include "runtime/data/batch_source.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/run/device.h"
#include "runtime/train/run/drop_logs_after_step.h"
#include "runtime/train/run/provenance.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

class Opening {
 public:
  Opening(const Start& start, const RunDirectory& directory)
      : start_(start),
        directory_(directory),
        console_(start.console),
        session_(*start.built.session) {}

  /// Says what begins, and where everything is. A training that resumes gets its room.
  void show(const std::string& git) {
    const Arguments& arguments = start_.arguments;
    console_.info(fmt::format("command   {}", arguments.command_line));
    console_.info(fmt::format("run       {}", directory_.root()));
    say_fact("run", directory_.root());
    if (!start_.built.config.empty()) console_.info(start_.built.config);
    console_.info(fmt::format("device    {}", describe_device(session_.context().device)));
    console_.info(fmt::format("seed      {}", session_.context().seed));
    console_.info(fmt::format("git       {}", git));
    console_.info(fmt::format("process   {} on {}", getpid(), host_name()));
    for (int rank = 1; rank < start_.world.size(); ++rank) {
      console_.info(fmt::format("          {}", start_.world.describe(rank)));
    }
    for (const auto& text : session_.context().networks.descriptions()) {
      console_.info(fmt::format("network   {}", text));
    }
    const BuiltStart& built = start_.built;
    if (!built.weights.empty()) console_.info(fmt::format("init_from {}", built.weights));
    for (const auto& text : session_.freezing().descriptions()) console_.info(text);
    if (!built.machine.empty()) console_.info(built.machine);
    if (arguments.train && start_.opened.is_resuming) return resume();
    show_checkpoint();
  }

 private:
  void show_checkpoint() {
    const Arguments& arguments = start_.arguments;
    if (!start_.opened.checkpoint) return;
    const std::string& path = start_.opened.checkpoint->path;
    if (arguments.retrain) return console_.info("weights from " + path);
    if (session_.settings().eval_all) return;  // each is reported
    console_.info(fmt::format("{} {} (step {})",
                              arguments.train ? "a new run, which continues from" : "evaluating",
                              path, with_thousands(session_.position().global_step)));
  }

  /// Says where the training resumes, and moves away what came later.
  void resume() {
    const OpenedStart& opened = start_.opened;
    const RunProcess& before = opened.lock->before();
    if (before.state == "running") {
      console_.info(fmt::format("the last training of this run, process {} on {}, was killed",
                                before.pid, before.host));
    }
    if (opened.checkpoint) {
      console_.info(resume_text(opened.checkpoint->path));
    } else {
      say_there_is_none();
    }
    const std::string& changes = start_.built.changes;
    if (!changes.empty() && !start_.built.config.ends_with(":\n" + changes)) {
      console_.info(fmt::format("the config differs from {}'s:\n{}",
                                opened.checkpoint ? "the checkpoint" : "the last start", changes));
    }
    sweep_temporaries(directory_.root());
    int64_t last_step = opened.checkpoint ? session_.position().global_step : int64_t{-1};
    // What the run itself has of that step is another one's.
    if (start_.built.is_from_elsewhere) --last_step;
    const DroppedLogs moved = drop_logs_after_step(directory_, last_step, opened.time);
    save_beginning(start_.built, directory_);
    if (!moved.repaired.empty()) console_.info(moved.repaired);
    if (moved.folder.empty()) return;
    console_.info(fmt::format("what came after step {} moved to {}",
                              with_thousands(std::max<int64_t>(last_step, 0)), moved.folder));
  }

  /// There is no checkpoint. A training that ended by itself, or that a signal stopped after a
  /// step, wrote one.
  void say_there_is_none() {
    const std::string again =
        fmt::format("starting again at step 0, seed {}", session_.context().seed);
    const std::string& state = start_.opened.lock->before().state;
    std::error_code failed;
    const auto logged = fs::file_size(directory_.metrics_file(), failed);
    if (state != "done" && (state != "stopped" || failed || logged == 0)) {
      return console_.info("no checkpoint was written yet: " + again);
    }
    console_.warn(
        fmt::format("{}: no checkpoint is there, though the last training ended as \"{}\" "
                    "and left one: was the folder removed? {}",
                    directory_.checkpoints(), state, again));
  }

  std::string resume_text(const std::string& checkpoint) {
    const Position& position = session_.position();
    const BatchOrder& order = session_.context().splits.order("train");
    const int64_t end = session_.settings().num_steps;
    std::string text =
        fmt::format("resuming at step {} {} {} ({} epochs done, {} examples into the next) from {}",
                    with_thousands(position.global_step),
                    position.global_step <= end ? "of" : "past the end at", with_thousands(end),
                    short_number(position.fractional_epoch()),
                    with_thousands(order.examples_in(position.batch, position.epoch)),
                    fs::path(checkpoint).lexically_proximate(directory_.root()).string());
    if (start_.opened.run_ended) {
      const auto written = fs::last_write_time(checkpoint);
      const std::chrono::duration<double> before_end = *start_.opened.run_ended - written;
      // A checkpoint can be the last thing that a run wrote.
      text += fmt::format(", written {} before the run ended",
                          span_text(std::max(before_end.count(), 0.0)));
    }
    return text;
  }

  const Start& start_;
  const RunDirectory& directory_;
  Console& console_;
  Session& session_;
};

}  // namespace

void show_opening(const Start& start, const RunDirectory& directory, const std::string& git) {
  Opening(start, directory).show(git);
}

}  // namespace stepop
