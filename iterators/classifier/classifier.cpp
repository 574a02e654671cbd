#include <ATen/ops/cross_entropy_loss.h>

#include "iterators/losses/class_targets.h"
#include "iterators/metrics/running_metrics.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"

namespace stepop {

/// Trains any network that maps an image to logits with cross entropy.
///
/// Batches: `image` [B, C, H, W], or another input of the network, and `class` int64 [B] or, as
/// soft labels, float [B, classes]. Logs the inputs if they are images, and the config's `metrics`.
/// Evaluates the logits, the classes and the loss of every example.
class Classifier : public Iterator {
 public:
  explicit Classifier(const Context& context)
      : Iterator(context),
        model_(context.network<Network>()),
        update_(context.update()),
        metrics_(context) {}

  StepOps step_op(const Batch& batch) override {
    const auto image = batch["image"];
    const auto logits = model_->forward(image);
    const auto target = class_targets(batch, "class", logits);
    return {
        .train_op =
            [=, this] {
              update_.step(at::cross_entropy_loss(logits, target));
              metrics_.update(logits, hard_classes(target));
            },
        .log_op =
            [=, this] {
              const auto loss = at::cross_entropy_loss(logits, target);
              const auto correct = logits.argmax(1) == hard_classes(target);
              Logs logs{.scalars = {{"loss", loss}, {"accuracy", correct.to(at::kFloat).mean()}}};
              metrics_.add_to(logs, logits, hard_classes(target));
              if (image.dim() == 4) logs.images.set("input", image);
              return logs;
            },
        .eval_op =
            [=] {
              const auto loss =
                  at::cross_entropy_loss(logits, target, {}, at::Reduction::None);  // [B]
              return EvalOutputs{.outputs = {{"logits", logits}, {"class", hard_classes(target)}},
                                 .labels = {{"loss", loss}}};
            },
    };
  }

  OrderedMap<std::string> eval_callbacks() const override { return {{"accuracy", "accuracy"}}; }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
  RunningMetrics metrics_;
};

STEPOP_REGISTER_ITERATOR(
    Classifier,
    {"Cross entropy for any network from image to logits.",
     {{"metrics/<name>", "none",
       "{class: F1}: logged over all steps since the last log; `stepop list metric`"}}});

}  // namespace stepop
