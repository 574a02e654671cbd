#pragma once

#include <memory>

#include "iterators/trainer/model_sampler.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/iterator/step_ops.h"

namespace stepop {

/// The samplers that a config names below `sampling`, as log ops: `sample_op/<name>`.
class SampleOps {
 public:
  /// Both arguments must outlive the object. Throws UsageError for an unknown sampler.
  SampleOps(const Context& context, LossModel& model);

  void add_to(StepOps& ops) const;

  /// For Iterator::log_ops.
  OrderedMap<std::string> log_ops() const;

 private:
  Logs sample(ModelSampler& sampler) const;

  const Context& context_;
  LossModel& model_;
  OrderedMap<std::shared_ptr<ModelSampler>> samplers_;
};

}  // namespace stepop
