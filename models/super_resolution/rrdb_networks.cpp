// RRDB by itself: the network that SRFlow begins with, and one that makes features for others.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/leaky_relu.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/normalization.h>

#include <memory>
#include <vector>

#include "models/super_resolution/options.h"
#include "models/super_resolution/rrdb.h"
#include "runtime/train/networks/network.h"

namespace stepop::srflow {
namespace {

namespace nn = torch::nn;

struct RrdbParams {
  RrdbSizes sizes;

  void declare(Parameters& p) {
    p.add("in_nc", sizes.in, "channels that come in", at_least(1));
    p.add("out_nc", sizes.out, "and go out", at_least(1));
    p.add("nf", sizes.inner, "channels between", at_least(1));
    p.add("nb", sizes.blocks, "blocks", at_least(1));
    p.add("gc", sizes.growth, "channels that each convolution of a block adds", at_least(1));
    p.add("scale", sizes.scale, "how many times larger: 4, 8, 16 or 32");
  }
};

/// The RRDB of SRFlow as a network: images [B, in_nc, H, W] to [B, out_nc, scale H, scale W]. Its
/// weights are those that `srflow` begins with.
class RrdbSrflow : public Network {
 public:
  struct Params : RrdbParams {
    void declare(Parameters& p) {
      RrdbParams::declare(p);
      p.add("initial_stride", sizes.stride, "of the first convolution", at_least(1));
    }
  };

  RrdbSrflow(const Params& params, const Config& config)
      : rrdb_(std::make_shared<Rrdb>(params.sizes, config)) {
    // Files of weights have no name before those of the parts.
    for (const auto& part : rrdb_->named_children()) register_module(part.key(), part.value());
  }

  at::Tensor forward(const at::Tensor& image) override { return rrdb_->forward(image).out; }

 private:
  std::shared_ptr<Rrdb> rrdb_;
};

/// A convolution of 1 x 1, and with `is_inner` a group normalization and an activation.
class PlaceConvolution : public nn::Module {
 public:
  PlaceConvolution(int64_t channels, bool is_inner)
      : convolution_(
            register_module("conv", nn::Conv2d(nn::Conv2dOptions(channels, channels, 1)))) {
    const at::NoGradGuard no_grad;
    const auto gain = is_inner ? nn::init::NonlinearityType(torch::kLeakyReLU)
                               : nn::init::NonlinearityType(torch::kLinear);
    nn::init::kaiming_normal_(convolution_->weight, 0.1, torch::kFanOut, gain);
    convolution_->bias.zero_();
    if (is_inner) norm_ = register_module("gn", nn::GroupNorm(nn::GroupNormOptions(8, channels)));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor made = convolution_->forward(x);
    return norm_ ? at::leaky_relu(norm_->forward(made), 0.2) : made;
  }

 private:
  nn::Conv2d convolution_;
  nn::GroupNorm norm_{nullptr};
};

/// Features of an image for another network, by the RRDB of SRFlow: images [B, in_nc, H, W] to [B,
/// nf (blocks_for_latent + 1), H, W].
class RrdbLatentWrapper : public Network {
 public:
  struct Params : RrdbParams {
    void declare(Parameters& p) {
      RrdbParams::declare(p);
      p.add("with_bypass", sizes.has_bypass, "blocks that each place weighs");
      p.require("blocks_for_latent", sizes.kept,
                "whose outputs are features, counted from 0, besides that of the last",
                at_least(0));
      Options::refuse_weights(p, "pretrain_path", "wrappedRRDB.");
    }
  };

  RrdbLatentWrapper(const Params& params, const Config& config) {
    const auto& sizes = params.sizes;
    for (const int64_t block : sizes.kept) {
      if (block < sizes.blocks) continue;
      throw config.error("blocks_for_latent", fmt::format("expected blocks from 0 to {}, as nb is "
                                                          "{}, found {}",
                                                          sizes.blocks - 1, sizes.blocks, block));
    }
    const int64_t channels = sizes.inner * static_cast<int64_t>(sizes.kept.size() + 1);
    if (channels % 8 != 0 || (sizes.has_bypass && sizes.inner % 8 != 0)) {
      throw config.error(
          "nf", fmt::format("expected a multiple of 8, the groups, found {}", sizes.inner));
    }
    rrdb_ = register_module("wrappedRRDB", std::make_shared<Rrdb>(sizes, config));
    after_ = register_module("postprocess", nn::Sequential());
    for (const bool is_inner : {true, true, false}) {
      after_->push_back(std::make_shared<PlaceConvolution>(channels, is_inner));
    }
  }

  at::Tensor forward(const at::Tensor& image) override {
    RrdbFeatures features = rrdb_->forward(image);
    features.blocks.push_back(features.last);
    return after_->forward(at::cat(features.blocks, 1));
  }

 private:
  std::shared_ptr<Rrdb> rrdb_;
  nn::Sequential after_{nullptr};
};

STEPOP_REGISTER_MODEL_AS("rrdb_srflow", RrdbSrflow,
                         {"The RRDB that SRFlow begins with: images to larger ones."});
STEPOP_REGISTER_MODEL_AS("rrdb_latent_wrapper", RrdbLatentWrapper,
                         {"Features of an image for another network, by the RRDB of SRFlow."});

}  // namespace
}  // namespace stepop::srflow
