#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/super_resolution/dense_blocks.h"
#include "runtime/core/config/config.h"
#include "runtime/train/networks/image_input.h"

namespace stepop::srflow {

/// What an RRDB is made of.
struct RrdbSizes {
  int64_t in = 3;      ///< Channels of the image.
  int64_t out = 3;     ///< Channels of the larger image.
  int64_t inner = 64;  ///< Channels between, `nf`.
  int64_t blocks = 23;
  int64_t growth = 32;  ///< Channels that each convolution of a block adds.
  int64_t scale = 4;    ///< A power of two from 4 on.
  int64_t stride = 1;   ///< Of the first convolution.
  bool has_bypass = false;
  std::vector<int64_t> kept;  ///< The blocks whose outputs are features, from 0 on.
};

/// Features of an image that RRDB makes on its way to a larger one.
struct RrdbFeatures {
  std::vector<at::Tensor> blocks;  ///< [B, inner, h, w] of each block that is kept.
  at::Tensor last;                 ///< [B, inner, h, w], behind all blocks.
  std::vector<at::Tensor> ups;     ///< [B, inner, 2 h, 2 w], [B, inner, 4 h, 4 w], up to the scale.
  at::Tensor out;                  ///< [B, out, scale h, scale w]
};

/// The RRDB that SRFlow sees an image through, as in DL-Art-School's models/srflow: that of ESRGAN
/// (Wang et al., 2018), which keeps what it makes on the way. h and w are the sides of the image,
/// divided by the stride. Parameters have the names of DL-Art-School.
class Rrdb : public torch::nn::Module {
 public:
  /// `config` has the keys `in_nc` and `scale`, or is that of the network around. Throws UsageError
  /// for a scale that is no power of two.
  Rrdb(const RrdbSizes& sizes, const Config& config);

  /// Of images [B, in, H, W]. Throws Error for other images.
  RrdbFeatures forward(const at::Tensor& image);

 private:
  ImageInput input_;
  std::vector<int64_t> kept_;
  torch::nn::Conv2d first_{nullptr};
  std::vector<std::shared_ptr<srgan::ResidualDenseBlocks>> body_;
  torch::nn::Conv2d after_body_{nullptr};
  std::vector<torch::nn::Conv2d> ups_;
  torch::nn::Conv2d high_{nullptr};
  torch::nn::Conv2d last_{nullptr};
};

}  // namespace stepop::srflow
