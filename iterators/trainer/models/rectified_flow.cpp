#include "iterators/diffusion/rectified_flow.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "iterators/diffusion/guidance.h"
#include "iterators/trainer/loss_model.h"
#include "iterators/trainer/models/inner_network.h"
#include "runtime/core/base/error.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/step/value_checks.h"

namespace stepop {
namespace {

std::vector<std::string> flow_inputs(const Config& params) {
  std::vector<std::string> names{"image"};
  if (params.get_at_least("classes", 0, 0) > 0) names.emplace_back("class");
  return names;
}

/// Trains any network of x, timesteps and classes, such as DiT or UNetModel, by rectified flow, and
/// samples with classifier-free guidance.
class RectifiedFlow : public LossModel {
 public:
  explicit RectifiedFlow(const Config& params)
      : LossModel(flow_inputs(params)),
        classes_(params.get_at_least("classes", 0, 0)),
        dropout_(params.get("class_dropout", 0.1)),
        time_scale_(params.get("timestep_scale", 1000.0)),
        shape_(params.get<std::vector<int64_t>>("shape")),
        steps_(params.get_at_least("steps", 1, 20)),
        guidance_(params.get("guidance", dropout_ > 0 ? 2.0 : 1.0)),
        network_(register_module("network", build_inner<MultiNetwork>(params, "network"))) {
    if (!(dropout_ >= 0 && dropout_ <= 1)) {
      throw params.error("class_dropout",
                         fmt::format("expected a probability, found {}", dropout_));
    }
    if (classes_ > 0 && dropout_ == 0 && guidance_ != 1) {
      throw params.error(
          "guidance", fmt::format("{}, with class_dropout: 0: guidance needs what the network says "
                                  "without a class, which such a training never teaches. Take "
                                  "guidance: 1, or a class_dropout such as 0.1",
                                  guidance_));
    }
    const auto times = params.get("times", "uniform");
    if (times != "uniform" && times != "logit_normal") {
      throw params.error("times",
                         fmt::format("expected uniform or logit_normal, found \"{}\"", times));
    }
    times_ =
        times == "uniform" ? diffusion::FlowTimes::kUniform : diffusion::FlowTimes::kLogitNormal;
  }

  LossOutput forward(const Batch& batch) override {
    const at::Tensor& image = batch["image"];
    at::Tensor classes;
    if (classes_ > 0) {
      check_classes(batch["class"]);
      classes = diffusion::drop_classes(batch["class"], classes_, is_training() ? dropout_ : 0);
    }
    const at::Tensor t = diffusion::random_times(image.size(0), times_, image.device());
    const auto velocity = [&](const at::Tensor& x, const at::Tensor& time) {
      return call(x, time, classes);
    };
    return diffusion::rectified_flow_loss(velocity, image, at::randn_like(image), t);  // [B]
  }

  at::Tensor sample(const Batch& conditions) override {
    std::vector<int64_t> shape{conditions.size()};
    shape.insert(shape.end(), shape_.begin(), shape_.end());
    const auto options = at::TensorOptions(at::kFloat).device(parameters().front().device());
    const at::Tensor noise = at::randn(shape, options);
    const diffusion::ConditionalModel model = [this](const at::Tensor& x, const at::Tensor& t,
                                                     const at::Tensor& classes) {
      return call(x, t, classes);
    };
    if (classes_ == 0) {
      const auto velocity = [&](const at::Tensor& x, const at::Tensor& t) {
        return call(x, t, {});
      };
      return diffusion::sample_flow(velocity, noise, steps_);
    }
    check_classes(conditions["class"]);
    const auto velocity = diffusion::with_guidance(model, conditions["class"], classes_, guidance_);
    return diffusion::sample_flow(velocity, noise, steps_);
  }

 private:
  /// The number `classes` means no class, and would be trained as such. In a training step a GPU is
  /// not asked.
  void check_classes(const at::Tensor& classes) const {
    const bool reads = classes.is_cpu() || !at::GradMode::is_enabled() || ValueChecks::are_on();
    if (!reads || classes.numel() == 0) return;
    const int64_t most = classes.max().item<int64_t>();
    if (most < classes_ && classes.min().item<int64_t>() >= 0) return;
    throw Error(
        fmt::format("RectifiedFlow: a batch has the classes {} to {}, and `classes` is {}: "
                    "0 to {}",
                    classes.min().item<int64_t>(), most, classes_, classes_ - 1));
  }

  at::Tensor call(const at::Tensor& x, const at::Tensor& t, const at::Tensor& classes) {
    std::vector<at::Tensor> inputs{x, t * time_scale_};
    if (classes.defined()) inputs.push_back(classes);
    return network_->forward_all(inputs).at(0);
  }

  int64_t classes_;
  double dropout_;
  double time_scale_;
  std::vector<int64_t> shape_;
  int64_t steps_;
  double guidance_;
  diffusion::FlowTimes times_ = diffusion::FlowTimes::kUniform;
  std::shared_ptr<MultiNetwork> network_;
};

STEPOP_REGISTER_MODEL(
    RectifiedFlow,
    {"Rectified flow by any network of x, timesteps and classes: a LossModel.",
     {{"network", "", "DiT, UNetModel, or one of your own (MultiNetwork)"},
      {"shape", "", "of a sample: [1, 8, 8]"},
      {"classes", "0", "how many; the network knows one more, the number of this key: none"},
      {"class_dropout", "0.1", "how often a class is replaced by none, for guidance"},
      {"times", "uniform", "which times a training sees: uniform or logit_normal"},
      {"timestep_scale", "1000", "what the network gets at time 1"},
      {"steps", "20", "of the sampling"},
      {"guidance", "2",
       "how far samples move to their class; 1, with class_dropout: 0 the default: not"}}});

}  // namespace
}  // namespace stepop
