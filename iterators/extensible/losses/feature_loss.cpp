#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <string>

#include "iterators/extensible/losses/criterion.h"
#include "iterators/extensible/step/loss.h"
#include "iterators/losses/perceptual.h"

namespace stepop::extensible {
namespace {

/// The distance of two images in one layer of VGG19.
class Feature : public Loss {
 public:
  Feature(const Config& params, Ports& ports)
      : criterion_(params),
        real_(ports.reads(params, "real")),
        fake_(ports.reads(params, "fake")),
        layer_(params.get_at_least("layer", 1, 5)),
        vgg_(load(params, ports.context().device)) {
    if (layer_ > static_cast<int64_t>(stepop::losses::Vgg19::kLayers)) {
      throw params.error("layer", fmt::format("expected {} at most, found {}",
                                              stepop::losses::Vgg19::kLayers, layer_));
    }
    // DL-Art-School's name for VGG19, the only choice here.
    const auto model = params.get("which_model_F", "vgg");
    if (model != "vgg") {
      throw params.error("which_model_F", fmt::format("expected vgg, found \"{}\"", model));
    }
  }

  at::Tensor compute(StepState& state, const Iteration&, Scalars&) override {
    const auto count = static_cast<size_t>(layer_);
    at::Tensor real;
    {
      const at::NoGradGuard no_grad;
      real = vgg_.forward(state.tensor(real_), count).back();
    }
    return criterion_(vgg_.forward(state.tensor(fake_), count).back(), real);
  }

 private:
  static stepop::losses::Vgg19 load(const Config& params, const c10::Device& device) {
    if (!params.has("vgg19")) {
      throw params.error("vgg19", fmt::format("missing: the file of VGG19's weights, which this "
                                              "makes:\n  {}",
                                              stepop::losses::Vgg19::export_line()));
    }
    return {params.get_path("vgg19"), device};
  }

  Criterion criterion_;
  Slot real_, fake_;
  int64_t layer_;
  stepop::losses::Vgg19 vgg_;
};

STEPOP_REGISTER_LOSS(feature, Feature,
                     {"How far two images in [-1, 1] are apart for a layer of VGG19.",
                      {{"criterion", "", "l1, l2, cosine or a loss function"},
                       {"real", "", ""},
                       {"fake", "", ""},
                       {"vgg19", "", "safetensors file of the weights", true},
                       {"layer", "5", "1 to 5: relu1_2, relu2_2, relu3_2, relu4_2, relu5_2"}}});

}  // namespace
}  // namespace stepop::extensible
