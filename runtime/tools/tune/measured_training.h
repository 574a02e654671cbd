#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/core/config/config.h"
#include "runtime/core/config/value.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/iterator/hook.h"
#include "runtime/train/loop/session.h"

namespace stepop {

/// A training for the sake of its steps: it logs, saves and evaluates nothing, and has no end. Its
/// epochs and its own hooks are those of the config. `config` is resolved; a copy of it, changed.
Value config_of_steps(Value config);

/// Looks at the steps of such a training.
class StepHook : public Hook {
 public:
  /// `session` must outlive it.
  explicit StepHook(Session& session);

  /// Ends an epoch by itself: the loop would save a checkpoint.
  void after_step(int64_t step) override;

 protected:
  Session& session() { return session_; }

 private:
  Session& session_;
  int64_t batches_per_epoch_;
};

using MakeStepHook = std::function<std::unique_ptr<StepHook>(Session& session)>;

/// Trains by a config that config_of_steps made, until the hook ends the process. `folder` is for
/// what hooks of the user's write; `weights` is a checkpoint to begin with, or empty. Throws what a
/// training throws, and Error when it ends.
[[noreturn]] void train_for_steps(const Config& config, World& world, const std::string& folder,
                                  const std::string& weights, const MakeStepHook& make_hook);

/// The other side of a TrainingSubject: trains in portions of steps, which are asked for by lines
/// `run <steps before> <steps>` on the standard input, and answered by lines of JSON on the file
/// `answers`. First it says what it has: PresentSettings. Ends the process with its input. Of
/// several processes each does this.
[[noreturn]] void run_measured_training(const Config& config, World& world,
                                        const std::string& folder, int answers);

}  // namespace stepop
