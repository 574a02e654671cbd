#include "iterators/trainer/trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

WeightedMean loss_of(const LossOutput& output) {
  return output.weighted.has_weight() ? output.weighted : WeightedMean(output.loss);
}

WeightedMean without_graph(const WeightedMean& mean) {
  if (mean.known_weight()) return {mean.value().detach(), *mean.known_weight()};
  return {mean.value().detach(), mean.weight()};
}

/// The loss and the metrics as numbers, without their graphs.
Scalars scalars_of(const LossOutput& output, const WeightedMean& loss,
                   const std::string& loss_name) {
  Scalars scalars{{loss_name, without_graph(loss)}};
  for (const auto& [name, metric] : output.metrics) {
    const at::Tensor* tensor = metric.tensor();
    if (metric.weighted() != nullptr) {
      scalars.set(name, without_graph(metric.weighted()->mean()));
    } else {
      scalars.set(name, tensor == nullptr ? metric : Scalar(tensor->detach().mean()));
    }
  }
  return scalars;
}

/// A number for each example: [B]. One number for the whole batch is repeated for each example.
at::Tensor of_examples(const std::string& name, const at::Tensor& value, int64_t size) {
  if (value.dim() == 0) return value.expand({size});
  if (value.dim() == 1 && value.size(0) == size) return value;
  throw Error(
      fmt::format("{}: expected one number [], or one for each of the {} examples, found {}", name,
                  size, describe_tensor(value)));
}

/// The same with weights, of which a mean of the whole batch gives each example its part.
WeightedMean of_examples(const std::string& name, const WeightedMean& mean, int64_t size) {
  at::Tensor values = of_examples(name, mean.value(), size);
  if (!mean.has_weight()) return values;
  const at::Tensor weight = mean.weight();
  return {std::move(values), weight.dim() == 0
                                 ? weight.div(mean.value().dim() == 0 ? size : 1).expand({size})
                                 : weight};
}

}  // namespace

void LossModelTrainer::declare(Parameters& p) {
  p.describe({"inputs",
              "none",
              "{name of the model: key of the batch}, where they differ",
              false,
              {"map"}});
  p.describe(
      {"sampling", "none", "{name: {class: NoiseToImage, when: 500}}: samplers", false, {"map"}});
}

LossModelTrainer::LossModelTrainer(const Context& context)
    : Iterator(context),
      model_(context.network<LossModel>()),
      inputs_(config(), *model_),
      samples_(context, *model_) {}

StepOps LossModelTrainer::step_op(const Batch& batch) {
  const Batch inputs = inputs_.of(batch);
  StepOps ops;
  if (get_split() == "train" && at::GradMode::is_enabled()) {
    const LossOutput output = forward(inputs, /*trains=*/true);
    ops.train_op = [=, this] { return train(output, inputs); };
    ops.log_op = [] { return Logs{}; };  // the scalars from train_op are logged
  } else {
    ops.log_op = [=, this] {
      const LossOutput output = forward(inputs, /*trains=*/false);
      return Logs{.scalars = scalars_of(output, loss_of(output).mean(), "loss")};
    };
  }
  ops.eval_op = [=, this] { return evaluate(inputs); };
  samples_.add_to(ops);
  return ops;
}

LossOutput LossModelTrainer::forward(const Batch& batch, bool trains) {
  before_forward(trains);
  model_->set_global_step(context().position.global_step);
  LossOutput output = model_->forward(batch);
  if (!output.loss.defined()) throw Error("the model's forward returned an undefined loss");
  of_examples("the model's loss", output.loss, batch.size());
  return output;
}

Scalars LossModelTrainer::train(const LossOutput& output, const Batch& inputs) {
  before_forward(/*trains=*/true);  // an op of another split may have run in between
  const WeightedMean loss = loss_of(output).mean();
  const Scalars scalars = scalars_of(output, loss, loss_name());
  update().step(loss, [&] { return loss_of(forward(inputs, /*trains=*/true)).mean(); });
  return scalars;
}

EvalOutputs LossModelTrainer::evaluate(const Batch& batch) {
  const LossOutput output = forward(batch, /*trains=*/false);
  EvalOutputs made;
  made.labels.set("loss", of_examples("loss", loss_of(output), batch.size()));
  for (const auto& [name, metric] : output.metrics) {
    const at::Tensor* tensor = metric.tensor();
    if (metric.weighted() != nullptr) {
      made.labels.set(name, of_examples(name, *metric.weighted(), batch.size()));
      continue;
    }
    made.labels.set(name, tensor != nullptr
                              ? of_examples(name, *tensor, batch.size())
                              : at::full({batch.size()}, metric.read(name), at::kDouble));
  }
  return made;
}

namespace {

/// Trains a model that computes its own loss, like game_gen's Trainer.
class Trainer : public LossModelTrainer {
 public:
  struct Params {
    static void declare(Parameters& p) { LossModelTrainer::declare(p); }
  };

  explicit Trainer(const Context& context) : LossModelTrainer(context), update_(context.update()) {}

 protected:
  Update& update() override { return update_; }

 private:
  Update& update_;
};

STEPOP_REGISTER_ITERATOR(Trainer, {"Trains a model that knows its loss (LossModel)."});

}  // namespace
}  // namespace stepop
