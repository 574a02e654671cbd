#include "runtime/tools/start/train_run.h"

#include <c10/core/Device.h>
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/log/bridge.h"
#include "runtime/core/log/console.h"
#include "runtime/core/log/facts.h"
#include "runtime/core/log/profile_text.h"
#include "runtime/core/measure/profile.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/tools/cli/exit_codes.h"
#include "runtime/train/iterator/hook.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/loop/reporter.h"
#include "runtime/train/loop/training_loop.h"
#include "runtime/train/run/device.h"

namespace stepop {
namespace {

/// Ends a training if another process has taken over its run.
class LockWatch : public Hook {
 public:
  explicit LockWatch(RunLock& lock) : lock_(lock) {}
  void before_step(int64_t) override { lock_.check(); }
  void after_checkpoint(const std::string&) override { lock_.look_and_check(); }

 private:
  RunLock& lock_;
};

/// A profile that starts now; at the borders of its parts, it waits for a GPU.
std::shared_ptr<Profile> begin_profile(const c10::Device& device) {
  if (device.is_cpu()) return std::make_shared<Profile>();
  return std::make_shared<Profile>([device] { synchronize(device); });
}

/// Ends the profile, shows its table, and writes its trace to `path`.
void end_profile(Profile& profile, const std::string& path, Console& console) {
  profile.stop();
  console.info(fmt::format("where the time of {} went:\n{}", counted(profile.steps(), "step"),
                           profile_table(profile)));
  if (profile.waits_for_device()) {
    console.info(
        "the GPU was waited for where a part begins and ends: without --profile the training is "
        "faster");
  }
  write_file_atomically(path, chrome_trace(profile));
  console.info(fmt::format("the first {} steps, for chrome://tracing or ui.perfetto.dev: {}",
                           with_thousands(profile.traced_steps()), path));
}

/// Makes sure that the last log entries reach services that have their own processes.
void finish_bridges(const Session& session, Console& console) {
  for (const auto& sink : session.settings().integrations) {
    auto* bridge = dynamic_cast<Bridge*>(sink.get());
    if (bridge == nullptr) continue;
    const std::string warning = bridge->finish([&](const auto& text) { console.info(text); });
    if (!warning.empty()) console.warn(warning);
  }
}

}  // namespace

TrainingEnd train_run(Console& console, const RunDirectory& directory, Session& session,
                      const TrainingStart& start, RunLock* lock) {
  using Kind = StopReason::Kind;
  const int64_t batches = session.context().splits.order("train").batches_per_epoch();
  const bool is_root = session.context().world.is_root();
  Reporter reporter(console, directory, session.settings(), batches, is_root);
  if (start.profiles) session.set_profile(begin_profile(session.context().device));
  TrainingLoop loop(session, directory, reporter,
                    {.time = start.time,
                     .git = start.git,
                     .deadline = start.deadline,
                     .takes_changes = start.takes_changes});
  std::optional<LockWatch> watch;
  if (lock != nullptr) loop.add_hook(watch.emplace(*lock), "lock");
  const StopReason reason = loop.run();
  const bool is_rewound = reason.kind == Kind::kRewind;
  const bool is_changed = is_rewound || reason.kind == Kind::kChange;
  if (!is_changed) {
    reporter.show_outputs();
    console.info(fmt::format("ended: {}", reason.text));
  }
  const bool is_done = !is_changed && end_of(reason.kind) == "done";
  if (lock != nullptr) lock->end(is_done ? "done" : "stopped");
  if (is_root && !is_changed) say_fact("ended", is_done ? "done" : "stopped");
  if (start.profiles && is_root) {
    end_profile(*session.context().profile, directory.profile(start.time), console);
  }
  if (is_rewound) return {.rewind = loop.rewind()};
  if (is_changed) return {.is_changed = true};
  if (is_root) finish_bridges(session, console);
  if (reason.kind == Kind::kTime) {
    console.info("max_time counts from each start; --max_time null trains to the end");
  }
  if (reason.kind == Kind::kStep) console.info("--stop_at null trains to the end");
  if (!is_done) console.info("saved; resume with:  " + resume_command(directory.root()));
  if (reason.kind == Kind::kSignal) return {.exit_code = 128 + reason.signal};
  return {.exit_code = loop.failed_callbacks() > 0 ? kCallbackFailed : 0};
}

}  // namespace stepop
