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
  struct Params {
    Criterion criterion;
    Port real;
    Port fake;
    std::string vgg19;
    int64_t layer = 5;

    void declare(Parameters& p) {
      require_criterion(p, criterion);
      p.require("real", real, "");
      p.require("fake", fake, "");
      p.add("layer", layer, "1 to 5: relu1_2, relu2_2, relu3_2, relu4_2, relu5_2",
            at_least(1).at_most(stepop::losses::Vgg19::kLayers));
      const Config* config =
          p.describe({"vgg19", "", "safetensors file of the weights", true, {.kind = "path"}});
      if (config == nullptr) return;
      if (!config->has("vgg19")) {
        throw config->error("vgg19", fmt::format("missing: the file of VGG19's weights, which this "
                                                 "makes:\n  {}",
                                                 stepop::losses::Vgg19::export_line()));
      }
      vgg19 = config->get_path("vgg19");
    }
  };

  Feature(const Params& params, const Config& config, Ports& ports)
      : criterion_(params.criterion),
        real_(ports.reads(params.real)),
        fake_(ports.reads(params.fake)),
        layer_(params.layer),
        vgg_(params.vgg19, ports.context().device) {
    // DL-Art-School's name for VGG19, the only choice here.
    const auto model = config.get("which_model_F", "vgg");
    if (model != "vgg") {
      throw config.error("which_model_F", fmt::format("expected vgg, found \"{}\"", model));
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
  Criterion criterion_;
  Slot real_, fake_;
  int64_t layer_;
  stepop::losses::Vgg19 vgg_;
};

STEPOP_REGISTER_LOSS(feature, Feature,
                     {"How far two images in [-1, 1] are apart for a layer of VGG19."});

}  // namespace
}  // namespace stepop::extensible
