#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/super_resolution/flow_layers.h"
#include "models/super_resolution/options.h"
#include "models/super_resolution/rrdb.h"
#include "runtime/core/config/config.h"
#include "runtime/train/networks/network.h"

namespace stepop::srflow {

/// What SRFlow makes of an image and the same image, smaller.
struct Encoded {
  /// [B, C, h, w] each, in the order in which they leave the flow; together as many numbers as the
  /// image has. Standard normal numbers, if the image is a likely one.
  std::vector<at::Tensor> latents;
  at::Tensor nll;     ///< [B], in bits per pixel.
  at::Tensor logdet;  ///< [B], with the probability of all latents but the last.
};

/// What SRFlow makes of latents and a smaller image.
struct Decoded {
  at::Tensor image;   ///< [B, 3, H, W]
  at::Tensor logdet;  ///< [B]
  at::Tensor rrdb;    ///< [B, 3, ...], the image that RRDB alone makes.
};

/// How an image is made of latents.
struct Decoding {
  /// As of Encoded, or the last one alone, or none: those that are missing are drawn.
  std::vector<at::Tensor> latents = {};
  /// The standard deviation of latents that are drawn. With 0 the last latent is 0, and the others
  /// are drawn with 1, as in DL-Art-School.
  double heat = 1;
  bool with_gradient = false;
  /// Whether `logdet` counts the noise of the training.
  bool adds_noise = true;
};

/// SRFlow (Lugmayr et al., 2020), as in DL-Art-School: a normalizing flow between images and normal
/// numbers, under the condition of the image in a smaller size, which it sees through RRDB.
/// Parameters have the names of DL-Art-School.
///
/// Its inputs have the order there: the image [B, 3, H, W]; the smaller image [B, 3, h, w]; z; the
/// standard deviation of latents that are drawn, and whether to make an image of latents, each a
/// tensor with one element. Forwards the outputs are all latents [B, 3 H W], one after another, the
/// loss [B] in bits per pixel, and the logarithm of the determinant [B]. In reverse they are the
/// image, the logarithm of the determinant, and the image that RRDB alone makes; z may be all
/// latents, the last one [B, C, h, w], or missing, and then is drawn.
class SrFlow : public MultiNetwork {
 public:
  using Params = Options;
  SrFlow(const Params& params, const Config& config);

  std::vector<std::string> input_names() const override;
  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override;

  /// `image` [B, 3, H, W], `small` [B, 3, H / scale, W / scale]. `adds_noise`: as in training,
  /// noise as large as the steps of 8-bit pixels. Throws Error for images that do not fit.
  Encoded encode(const at::Tensor& image, const at::Tensor& small, bool adds_noise);
  /// Throws Error for a `small` or latents that do not fit.
  Decoded decode(const at::Tensor& small, const Decoding& how);

 private:
  /// A layer of the flow: a squeeze, unless it is one of the others.
  struct Layer {
    size_t level = 0;  ///< 0: half the size of the image.
    std::shared_ptr<FlowStep> step = {};
    std::shared_ptr<Split> split = {};
  };
  /// The features of the smaller image.
  struct Condition {
    std::vector<at::Tensor> levels;  ///< [B, C, H / 2, W / 2], [B, C, H / 4, W / 4]...
    int64_t height = 0;              ///< Of the image.
    int64_t width = 0;
    at::Tensor out;  ///< As of RrdbFeatures.
  };

  void build(const FlowOptions& flow, int64_t channels_of_rrdb);
  Condition condition(const at::Tensor& small);
  /// The shapes [C, h, w] of the latents of an image.
  std::vector<std::vector<int64_t>> latent_shapes(const Condition& seen) const;
  /// The latents that are given or drawn; undefined ones are drawn later.
  std::vector<at::Tensor> latents_of(const Condition& seen, const at::Tensor& small,
                                     const Decoding& how) const;

  int64_t flow_scale_;
  int64_t stride_;
  bool trains_rrdb_;
  double quant_;
  bool has_noise_;
  bool stacks_;  ///< Whether the features of each level have those of blocks beside them.
  size_t levels_;
  int64_t channels_;  ///< Of the last latent.
  std::shared_ptr<Rrdb> rrdb_;
  std::vector<Layer> layers_;
};

}  // namespace stepop::srflow
