#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/vunet/parts.h"
#include "runtime/core/config/config.h"
#include "runtime/train/networks/network.h"

namespace stepop {

/// Renders a person in the pose of one image with the appearance of another (Esser, Sutter, Ommer,
/// "A Variational U-Net for Conditional Appearance and Shape Generation", CVPR 2018). Parameters
/// have the names of the PyTorch implementation at github.com/jhaux/VUNet, so its weights load.
class VUNet : public MultiNetwork {
 public:
  /// Where the latents come from.
  enum class Mode {
    kTrain,               ///< `train`: samples of the posterior.
    kAppearanceTransfer,  ///< `appearance_transfer`: means of the posterior; nothing is random.
    kSampleAppearance     ///< `sample_appearance`: samples of the prior.
  };
  /// Throws Error, which lists the three modes, for any other name.
  static Mode mode_of(std::string_view name);

  /// `params` is the model's part of the config. Throws UsageError for a `spatial_size` that is not
  /// a power of two of at least 4, and for an `nf_start` that is not half of `nf_max`.
  struct Params {
    int64_t spatial_size = 256;
    int64_t nf_start = 64;
    int64_t nf_max = 128;
    bool final_act = true;
    double dropout_prob = 0;
    int64_t img_channels = 3;
    int64_t pose_channels = 3;

    void declare(Parameters& p);
  };

  VUNet(const Params& params, const Config& config);

  struct Inputs {
    at::Tensor pose;        ///< [B, pose_channels, W, W], W the `spatial_size`.
    at::Tensor appearance;  ///< [B, img_channels, W, W]
  };
  /// The image [B, 3, W, W], in [-1, 1] with `final_act`. Throws Error for inputs of other shapes.
  at::Tensor forward(const Inputs& inputs, Mode mode = Mode::kTrain);

  /// Renders the image from the pose and the appearance, in the mode `appearance_transfer`.
  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override;
  std::vector<std::string> input_names() const override { return {"pose", "appearance"}; }

  struct SavedTensors {
    vunet::Latents q_means;  ///< The posterior's means, by stage.
    vunet::Latents p_means;  ///< The prior's means.
  };
  /// The tensors of the last call of `forward`.
  const SavedTensors& saved_tensors() const { return saved_tensors_; }

 private:
  at::Tensor run(const Inputs& inputs, Mode mode);
  void check(const at::Tensor& images, const char* name, int64_t channels) const;

  int64_t spatial_size_;
  int64_t image_channels_;
  int64_t pose_channels_;
  SavedTensors saved_tensors_;
  std::shared_ptr<vunet::Encoder> f_phi_;
  std::shared_ptr<vunet::Encoder> e_theta_;
  std::shared_ptr<vunet::ZConverter> zc_;
  std::shared_ptr<vunet::Bottleneck> bottleneck_;
  std::shared_ptr<vunet::Decoder> decoder_;
};

}  // namespace stepop
