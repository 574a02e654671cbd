#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/core/config/config.h"
#include "runtime/core/value/value.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/iterator/hook.h"
#include "runtime/train/session/session.h"

namespace stepop {

/// The variable that makes `stepop tune` a process to be measured, and its values.
inline constexpr const char* kTuneVariable = "STEPOP_TUNE";
inline constexpr const char* kMeasureSteps = "steps";
inline constexpr const char* kTestRates = "rates";

/// Writes a line to the standard input, a socket. Ends this process when nobody reads it.
void answer(const std::string& line);

/// A copy of a resolved config for a training that is measured: it logs, saves and evaluates
/// nothing, and has no end. Its epochs and its own hooks stay.
Value config_of_steps(Value config);

/// Looks at the steps of such a training.
class StepHook : public Hook {
 public:
  /// `session` must outlive the hook.
  explicit StepHook(Session& session);

  /// Ends an epoch itself: the loop would save a checkpoint.
  void after_step(int64_t step) override;

 protected:
  Session& session() { return session_; }

 private:
  Session& session_;
  int64_t batches_per_epoch_;
};

using MakeStepHook = std::function<std::unique_ptr<StepHook>(Session& session)>;

/// Trains by a config from config_of_steps, until the hook ends the process. The user's hooks write
/// into `folder`; `weights` is a checkpoint to begin with, or empty. Unknown keys are an error
/// unless `allow_unknown`. Throws what a training throws, and Error when it ends.
[[noreturn]] void train_for_steps(const Config& config, bool allow_unknown, World& world,
                                  const std::string& folder, const std::string& weights,
                                  const MakeStepHook& make_hook);

/// The other side of a TrainingSubject, for the config of a whole training: first reports its
/// settings, a map as YAML in one line. Then trains portions of steps: each line `run <steps
/// before> <steps>` of the standard input is answered by `<seconds of a step> <bytes of memory>`.
/// Ends with its input.
[[noreturn]] void run_measured_training(const Config& config, bool allow_unknown, World& world,
                                        const std::string& folder);

}  // namespace stepop
