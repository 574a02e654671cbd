#include <stepop/stepop.h>

#include "iterators/losses/image_losses.h"
#include "iterators/losses/loss_manager.h"

namespace {
using stepop::losses::of_two;

/// |a - b| without a corner at 0, for each pixel.
torch::Tensor charbonnier(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).square() + 1e-6).sqrt();
}
STEPOP_REGISTER_LOSS_FUNCTION(charbonnier, charbonnier, {"A smooth |a - b|."});

class Painter : public stepop::Iterator {
 public:
  explicit Painter(const stepop::Context& context)
      : Iterator(context),
        generator_(context.network<stepop::Network>("generator")),
        update_(context.update("optimizer", {"generator"})),
        losses_(context, "losses",
                {{"G_L1", {of_two(stepop::losses::l1), {"G"}, 100}},
                 {"G_SOBEL", {of_two(stepop::losses::sobel), {"G", "edges"}}}}) {}

  stepop::StepOps step_op(const stepop::Batch& batch) override {
    const auto y = batch["target"];
    const auto y_fake = generator_->forward(batch["input"]);
    return {
        .train_op =
            [=, this] {
              for (const auto& name : losses_.names("G")) losses_(name, y_fake, y);
              update_.step(losses_.total("G"));
              return losses_.take_scalars();
            },
        .log_op =
            [=] {
              return stepop::Logs{.images = {{"fake", y_fake}, {"real", y}}};
            },
        .eval_op =
            [=, this] {
              const auto l1 = losses_.values("G_L1", {y_fake, y});  // [B]
              return stepop::EvalOutputs{.outputs = {{"fake", y_fake}}, .labels = {{"loss", l1}}};
            }};
  }

  void after_epoch(int64_t epoch) override {
    const auto mean = losses_.mean("G_L1", 100);  // of the last 100 steps
    context().log.info(fmt::format("epoch {}: G_L1 {:.3f}", epoch + 1, mean.value_or(0)));
  }

 private:
  std::shared_ptr<stepop::Network> generator_;
  stepop::Update& update_;
  stepop::losses::LossManager losses_;
};
STEPOP_REGISTER_ITERATOR(Painter, {"Paints label maps."});

}  // namespace
