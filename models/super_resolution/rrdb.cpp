#include "models/super_resolution/rrdb.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>

#include "runtime/train/networks/checkpoint_modules.h"

namespace stepop::srflow {
namespace {

namespace nn = torch::nn;
using srgan::activated;

nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel = 3, int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2));
}

at::Tensor doubled(const at::Tensor& x) {
  return at::upsample_nearest2d(x, {x.size(2) * 2, x.size(3) * 2});
}

}  // namespace

Rrdb::Rrdb(const RrdbSizes& sizes, const Config& config)
    : input_(config, config.has("in_nc") ? "in_nc" : "", sizes.in), kept_(sizes.kept) {
  if (sizes.scale < 4 || !std::has_single_bit(static_cast<uint64_t>(sizes.scale))) {
    throw config.error("scale", fmt::format("expected 4, 8, 16 or 32, found {}", sizes.scale));
  }
  const int64_t channels = sizes.inner;
  first_ = register_module(
      "conv_first", convolution(sizes.in, channels, sizes.stride == 1 ? 3 : 7, sizes.stride));
  const auto body = register_module("body", std::make_shared<nn::Module>());
  for (int64_t i = 0; i < sizes.blocks; ++i) {
    body_.push_back(body->register_module(
        std::to_string(i),
        std::make_shared<srgan::ResidualDenseBlocks>(channels, sizes.growth, sizes.has_bypass)));
  }
  after_body_ = register_module("conv_body", convolution(channels, channels));
  for (int64_t grown = 2; grown <= sizes.scale; grown *= 2) {
    ups_.push_back(register_module(fmt::format("conv_up{}", ups_.size() + 1),
                                   convolution(channels, channels)));
  }
  high_ = register_module("conv_hr", convolution(channels, channels));
  last_ = register_module("conv_last", convolution(channels, sizes.out));
}

RrdbFeatures Rrdb::forward(const at::Tensor& image) {
  input_.check(image);
  RrdbFeatures made;
  std::vector<at::Tensor> outputs;
  at::Tensor x = first_->forward(image);
  for (const auto& block : body_) {
    x = checkpointed(*block, x);
    outputs.push_back(x);
  }
  for (const int64_t block : kept_) made.blocks.push_back(outputs.at(static_cast<size_t>(block)));
  made.last = x + after_body_->forward(x);
  x = made.last;
  for (auto& up : ups_) {
    x = activated(up->forward(doubled(x)));
    made.ups.push_back(x);
  }
  made.out = last_->forward(activated(high_->forward(x)));
  return made;
}

}  // namespace stepop::srflow
