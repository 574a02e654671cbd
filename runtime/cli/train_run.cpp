#include "runtime/cli/train_run.h"

#include <fmt/format.h>

#include "runtime/base/shell_text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/run_profile.h"
#include "runtime/iterator/hook.h"
#include "runtime/loop/reporter.h"
#include "runtime/loop/training_loop.h"
#include "runtime/run/device.h"

namespace stepop {
namespace {

/// Ends a training whose run has become another process's.
class LockWatch : public Hook {
 public:
  explicit LockWatch(const RunLock& lock) : lock_(lock) {}
  void before_step(int64_t) override { lock_.check(); }

 private:
  const RunLock& lock_;
};

}  // namespace

int train_run(Console& console, const RunDirectory& directory, Session& session,
              const TrainingStart& start, RunLock& lock) {
  using Kind = StopReason::Kind;
  const int64_t batches = session.context().splits.order("train").batches_per_epoch();
  Reporter reporter(console, directory, session.settings(), batches);
  if (start.profiles) session.set_profile(begin_profile(session.context().device));
  TrainingLoop loop(session, directory, reporter,
                    {.time = start.time, .git = start.git, .deadline = start.deadline});
  LockWatch watch(lock);
  loop.add_hook(watch);
  const StopReason reason = loop.run();
  reporter.show_outputs();
  console.info(fmt::format("ended: {}", reason.text));
  const bool is_done = reason.kind == Kind::kDone || reason.kind == Kind::kMetric;
  lock.end(is_done ? "done" : "stopped");
  if (start.profiles) {
    end_profile(*session.context().profile, directory.profile(start.time), console);
  }
  if (reason.kind == Kind::kTime) {
    console.info("max_time counts anew in each start; --max_time null goes on to the end");
  }
  if (!is_done) console.info("saved; go on with:  " + resume_command(directory.root()));
  if (reason.kind == Kind::kSignal) return 128 + reason.signal;
  return loop.failed_callbacks() > 0 ? kCallbackFailed : 0;
}

}  // namespace stepop
