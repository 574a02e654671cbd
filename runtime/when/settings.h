#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "eval_out/write/eval_compression.h"
#include "runtime/checkpoint/retention.h"
#include "runtime/config/config.h"
#include "runtime/log/sink.h"
#include "runtime/when/trigger.h"

namespace stepop {

/// An op of a split, `validation/log_op`, as configs name it.
struct OpName {
  std::string split;
  std::string op;

  std::string text() const { return split + "/" + op; }
};

/// What a config says of when things happen: the runtime's own keys, read in one place and in every
/// mode, so that none of them is ever unknown.
struct Settings {
  /// `steps_per_epoch` gives epochs their meaning; 1 when nothing is trained. With `debug`, the
  /// limits of `debug/` hold.
  Settings(const Config& config, int64_t batches_per_epoch, bool train, bool debug);

  struct LogOpSetting {
    OpName name;
    Trigger when;
  };

  int64_t accumulate = 1;
  int64_t steps_per_epoch = 1;
  int64_t num_steps = 0;    ///< Where the training ends.
  int64_t debug_steps = 0;  ///< How many steps a run with `debug` makes.
  int64_t num_epochs = 0;   ///< The same in epochs, rounded up.
  /// By the clock, of one start: after it the training ends by itself.
  double max_seconds = std::numeric_limits<double>::infinity();

  std::vector<OpName> train_ops;
  std::vector<LogOpSetting> log_ops;

  Trigger checkpoint;
  bool checkpoint_zero = false;
  Retention retention;

  std::vector<std::shared_ptr<Sink>> integrations;  ///< Those that are active.

  bool evaluates = false;
  OpName eval_op;
  Trigger evaluation;
  int64_t max_eval_batches = 0;                          ///< 0 for no limit.
  EvalCompression compression = EvalCompression::kNone;  ///< Of the outputs.
  bool clean_after_callbacks = false;
  /// Without a training: every checkpoint is evaluated; and those that a training is going to
  /// write.
  bool eval_all = false;
  bool eval_forever = false;
};

}  // namespace stepop
