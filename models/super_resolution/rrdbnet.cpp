#include <ATen/TensorOperators.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>

#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "models/super_resolution/dense_blocks.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/image_input.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace {

namespace nn = torch::nn;

using srgan::activated;
using srgan::ResidualDenseBlocks;
using srgan::small_conv;

/// The generator of ESRGAN (Wang et al., 2018): images [B, in_nc, H, W] to [B, out_nc, scale H,
/// scale W]. Parameters have the names of DL-Art-School and BasicSR. The two differ in one skip
/// connection: in BasicSR it leads around the body, as in the paper; in DL-Art-School it begins
/// after the body.
class RrdbNet : public Network {
 public:
  struct Params {
    int64_t in_nc = 3;
    int64_t out_nc = 3;
    int64_t nf = 64;
    int64_t nb = 23;
    int64_t gc = 32;
    int64_t scale = 4;
    std::string additive_mode = "not";
    int64_t initial_stride = 1;
    bool skip_around_body = false;
    std::string output_mode = "hq_only";

    void declare(Parameters& p) {
      p.add("in_nc", in_nc, "channels that come in", at_least(1));
      p.add("out_nc", out_nc, "and go out", at_least(1));
      p.add("nf", nf, "channels between", at_least(1));
      p.add("nb", nb, "blocks", at_least(1));
      p.add("gc", gc, "channels that each convolution of a block adds", at_least(1));
      p.add("scale", scale, "how many times larger: 1, 2, 4 or 8", at_least(1).at_most(8));
      p.add("additive_mode", additive_mode,
            "additive: what is made is added to the image; additive_enforced: and changes no mean",
            one_of({"not", "additive", "additive_enforced"}));
      p.add("initial_stride", initial_stride, "of the first convolution", at_least(1));
      p.add("skip_around_body", skip_around_body,
            "true: as in the paper and BasicSR; false: as in DL-Art-School");
      p.add("output_mode", output_mode, "it has one output", one_of({"hq_only"}));
    }
  };

  RrdbNet(const Params& params, const Config& config)
      : scale_(params.scale), mode_(params.additive_mode), skips_body_(params.skip_around_body) {
    const int64_t channels = params.nf;
    const int64_t stride = params.initial_stride;
    if (!std::has_single_bit(static_cast<uint64_t>(scale_))) {
      throw config.error("scale", fmt::format("expected 1, 2, 4 or 8, found {}", scale_));
    }
    if (mode_ != "not" && (params.in_nc != params.out_nc || stride != 1)) {
      throw config.error("additive_mode", "needs in_nc = out_nc and initial_stride 1");
    }
    input_.emplace(config, "in_nc", params.in_nc);
    first_ = register_module("conv_first",
                             small_conv(params.in_nc, channels, stride == 1 ? 3 : 7, stride));
    body_ = register_module("body", nn::ModuleList());
    for (int64_t i = 0; i < params.nb; ++i) {
      body_->push_back(std::make_shared<ResidualDenseBlocks>(channels, params.gc));
    }
    after_body_ = register_module("conv_body", small_conv(channels, channels));
    for (int64_t i = 1; i <= (scale_ >= 8 ? 3 : 2); ++i) {
      ups_.push_back(register_module(fmt::format("conv_up{}", i), small_conv(channels, channels)));
    }
    high_ = register_module("conv_hr", small_conv(channels, channels));
    last_ = register_module("conv_last", small_conv(channels, params.out_nc));
  }

  at::Tensor forward(const at::Tensor& image) override {
    input_->check(image);
    at::Tensor x = first_->forward(image);
    at::Tensor body = x;
    for (const auto& block : *body_) {
      body = checkpointed(*block->as<ResidualDenseBlocks>(), body);
    }
    x = (skips_body_ ? x : body) + after_body_->forward(body);
    int64_t grown = 1;
    for (auto& up : ups_) {
      const bool grows = grown < scale_;
      if (grows) x = at::upsample_nearest2d(x, {x.size(2) * 2, x.size(3) * 2});
      if (grows) grown *= 2;
      x = activated(up->forward(x));
    }
    const at::Tensor out = last_->forward(activated(high_->forward(x)));
    if (mode_ == "not") return out;
    const std::vector<int64_t> size = {image.size(2) * scale_, image.size(3) * scale_};
    const at::Tensor larger = at::upsample_bilinear2d(image, size, /*align_corners=*/false);
    if (mode_ == "additive") return out + larger;
    const at::Tensor means = at::avg_pool2d(out, {scale_, scale_}, {scale_, scale_});
    return out - at::upsample_nearest2d(means, size) + larger;
  }

 private:
  std::optional<ImageInput> input_;
  int64_t scale_;
  std::string mode_;
  bool skips_body_;
  nn::Conv2d first_{nullptr};
  nn::ModuleList body_{nullptr};
  nn::Conv2d after_body_{nullptr};
  std::vector<nn::Conv2d> ups_;
  nn::Conv2d high_{nullptr};
  nn::Conv2d last_{nullptr};
};

STEPOP_REGISTER_MODEL_AS("RRDBNet", RrdbNet, {"The generator of ESRGAN: images to larger ones."});

}  // namespace
}  // namespace stepop
