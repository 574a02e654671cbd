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

/// Trains any network of x, timesteps and classes, such as DiT or UNetModel, by rectified flow, and
/// samples with classifier-free guidance.
class RectifiedFlow : public LossModel {
 public:
  struct Params {
    std::vector<int64_t> shape;
    int64_t classes = 0;
    double class_dropout = 0.1;
    std::string times = "uniform";
    double timestep_scale = 1000;
    int64_t steps = 20;
    double guidance = 2;

    void declare(Parameters& p) {
      p.describe({"network",
                  "",
                  "DiT, UNetModel, or one of your own (MultiNetwork)",
                  false,
                  {"component model"}});
      p.require("shape", shape, "of a sample: [1, 8, 8]");
      p.add("classes", classes,
            "how many; the network knows one more, the number of this key: none", at_least(0));
      p.add("class_dropout", class_dropout, "how often a class is replaced by none, for guidance",
            at_least(0).at_most(1));
      p.add("times", times, "which times a training sees", one_of({"uniform", "logit_normal"}));
      p.add("timestep_scale", timestep_scale, "what the network gets at time 1");
      p.add("steps", steps, "of the sampling", at_least(1));
      if (class_dropout == 0) guidance = 1;
      p.add("guidance", guidance,
            "how far samples move to their class; 1, with class_dropout: 0 the default: not");
    }
  };

  RectifiedFlow(const Params& params, const Config& config)
      : LossModel(params.classes > 0 ? std::vector<std::string>{"image", "class"}
                                     : std::vector<std::string>{"image"}),
        classes_(params.classes),
        dropout_(params.class_dropout),
        time_scale_(params.timestep_scale),
        shape_(params.shape),
        steps_(params.steps),
        guidance_(params.guidance),
        times_(params.times == "uniform" ? diffusion::FlowTimes::kUniform
                                         : diffusion::FlowTimes::kLogitNormal),
        network_(register_module("network", build_inner<MultiNetwork>(config, "network"))) {
    if (classes_ > 0 && dropout_ == 0 && guidance_ != 1) {
      throw config.error(
          "guidance", fmt::format("{}, with class_dropout: 0: guidance needs what the network says "
                                  "without a class, which such a training never teaches. Take "
                                  "guidance: 1, or a class_dropout such as 0.1",
                                  guidance_));
    }
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
  diffusion::FlowTimes times_;
  std::shared_ptr<MultiNetwork> network_;
};

STEPOP_REGISTER_MODEL(RectifiedFlow,
                      {"Rectified flow by any network of x, timesteps and classes: a LossModel."});

}  // namespace
}  // namespace stepop
