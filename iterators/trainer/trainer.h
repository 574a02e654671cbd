#pragma once

#include <memory>
#include <string>

#include "iterators/trainer/loss_model.h"
#include "iterators/trainer/model_inputs.h"
#include "iterators/trainer/sample_ops.h"
#include "runtime/train/iterator/iterator.h"

namespace stepop {

/// The base of the trainers of a LossModel: trains, logs and evaluates the loss of each batch, and
/// adds the samplers.
class LossModelTrainer : public Iterator {
 public:
  /// The parameters that all of these have.
  static void declare(Parameters& p);

  explicit LossModelTrainer(const Context& context);

  StepOps step_op(const Batch& batch) override;
  OrderedMap<std::string> log_ops() const override { return samples_.log_ops(); }

 protected:
  LossModel& model() const { return *model_; }

  /// Called before each `forward` of the model, and before the update of its loss.
  virtual void before_forward(bool /*trains*/) {}
  /// The update that this step's loss trains.
  virtual Update& update() = 0;
  /// The name of this step's loss in logs.
  virtual std::string loss_name() const { return "loss"; }

  /// The loss of a batch with the model's inputs. Throws Error for a loss of another shape.
  LossOutput forward(const Batch& batch, bool trains);

 private:
  Scalars train(const LossOutput& output, const Batch& inputs);
  EvalOutputs evaluate(const Batch& batch);

  std::shared_ptr<LossModel> model_;
  ModelInputs inputs_;
  SampleOps samples_;
};

}  // namespace stepop
