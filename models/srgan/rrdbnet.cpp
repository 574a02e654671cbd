#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>

#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/image_input.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace {

namespace nn = torch::nn;

at::Tensor activated(const at::Tensor& x) { return at::leaky_relu(x, 0.2); }

/// A convolution with Kaiming's initialization times 0.1, so that a residual block changes little
/// at first.
nn::Conv2d small_conv(int64_t in, int64_t out, int64_t kernel = 3, int64_t stride = 1) {
  nn::Conv2d conv(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2));
  const at::NoGradGuard no_grad;
  nn::init::kaiming_normal_(conv->weight, 0, torch::kFanIn, torch::kReLU);
  conv->weight.mul_(0.1);
  conv->bias.zero_();
  return conv;
}

/// Five convolutions, each of which sees the outputs of all earlier convolutions.
class DenseBlock : public nn::Module {
 public:
  DenseBlock(int64_t channels, int64_t growth) {
    for (int64_t i = 0; i < 5; ++i) {
      convolutions_.push_back(
          register_module(fmt::format("conv{}", i + 1),
                          small_conv(channels + i * growth, i == 4 ? channels : growth)));
    }
  }

  at::Tensor forward(const at::Tensor& input) {
    std::vector<at::Tensor> seen = {input};
    for (size_t i = 0; i + 1 < convolutions_.size(); ++i) {
      seen.push_back(activated(convolutions_[i]->forward(at::cat(seen, 1))));
    }
    return convolutions_.back()->forward(at::cat(seen, 1)) * 0.2 + input;
  }

 private:
  std::vector<nn::Conv2d> convolutions_;
};

/// Three dense blocks in a residual block.
class ResidualDenseBlocks : public nn::Module {
 public:
  ResidualDenseBlocks(int64_t channels, int64_t growth) {
    for (const char* name : {"rdb1", "rdb2", "rdb3"}) {
      blocks_.push_back(register_module(name, std::make_shared<DenseBlock>(channels, growth)));
    }
  }

  at::Tensor forward(const at::Tensor& input) {
    at::Tensor x = input;
    for (const auto& block : blocks_) x = block->forward(x);
    return x * 0.2 + input;
  }

 private:
  std::vector<std::shared_ptr<DenseBlock>> blocks_;
};

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
