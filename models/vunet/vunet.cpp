#include "models/vunet/vunet.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {
namespace {

constexpr int64_t kOutputChannels = 3;

/// The number of stages for images of this width; the last stage has the width 1.
int64_t stages_of(const Config& config, int64_t spatial_size) {
  if (spatial_size < 4 || !std::has_single_bit(static_cast<uint64_t>(spatial_size))) {
    throw config.error("spatial_size",
                       fmt::format("expected a power of two, 4 or more, as every stage halves the "
                                   "images down to one pixel; found {}",
                                   spatial_size));
  }
  return std::bit_width(static_cast<uint64_t>(spatial_size));
}

vunet::Options read_options(const VUNet::Params& params, const Config& config) {
  if (2 * params.nf_start != params.nf_max) {
    throw config.error(
        "nf_start", fmt::format("expected half of nf_max, as the decoder halves its nf_max = {} "
                                "channels for the first stage and joins it with nf_start; found {}",
                                params.nf_max, params.nf_start));
  }
  return {.stages = stages_of(config, params.spatial_size),
          .nf_start = params.nf_start,
          .nf_max = params.nf_max,
          .dropout = params.dropout_prob,
          .normalized_convolutions = !params.final_act};
}

}  // namespace

VUNet::Mode VUNet::mode_of(std::string_view name) {
  if (name == "train") return Mode::kTrain;
  if (name == "appearance_transfer") return Mode::kAppearanceTransfer;
  if (name == "sample_appearance") return Mode::kSampleAppearance;
  throw Error(fmt::format(
      "unknown mode of VUNet \"{}\"; expected train, appearance_transfer or sample_appearance",
      name));
}

void VUNet::Params::declare(Parameters& p) {
  p.add("spatial_size", spatial_size, "height and width of the images, a power of two");
  p.add("nf_start", nf_start, "channels of the first stage, half of nf_max", at_least(1));
  p.add("nf_max", nf_max, "channels of all other stages", at_least(2));
  p.add("final_act", final_act,
        "true: tanh at the end and plain convolutions; false: normalized convolutions");
  p.add("dropout_prob", dropout_prob, "probability of a value to be left out in residual blocks",
        at_least(0).below(1));
  p.add("img_channels", img_channels, "channels of the appearance", at_least(1));
  p.add("pose_channels", pose_channels, "channels of the pose", at_least(1));
}

VUNet::VUNet(const Params& params, const Config& config)
    : spatial_size_(params.spatial_size),
      image_channels_(params.img_channels),
      pose_channels_(params.pose_channels) {
  const vunet::Options options = read_options(params, config);
  f_phi_ = register_module("f_phi", std::make_shared<vunet::Encoder>(options, image_channels_));
  e_theta_ = register_module("e_theta", std::make_shared<vunet::Encoder>(options, pose_channels_));
  zc_ = register_module("zc", std::make_shared<vunet::ZConverter>(options));
  bottleneck_ = register_module("bottleneck", std::make_shared<vunet::Bottleneck>(options));
  decoder_ = register_module(
      "decoder", std::make_shared<vunet::Decoder>(options, kOutputChannels,
                                                  /*has_tanh=*/!options.normalized_convolutions));
}

at::Tensor VUNet::forward(const Inputs& inputs, Mode mode) {
  if (is_watched()) call_begins({inputs.pose, inputs.appearance});
  return run(inputs, mode);
}

std::vector<at::Tensor> VUNet::forward_all(const std::vector<at::Tensor>& inputs) {
  if (inputs.size() != 2) {
    throw Error(
        fmt::format("VUNet: expected a pose and an appearance, found {} inputs", inputs.size()));
  }
  return {run({inputs[0], inputs[1]}, Mode::kAppearanceTransfer)};
}

at::Tensor VUNet::run(const Inputs& inputs, Mode mode) {
  check(inputs.pose, "pose", pose_channels_);
  check(inputs.appearance, "appearance", image_channels_);
  const vunet::Features pose = e_theta_->forward(inputs.pose);
  const vunet::Features appearance = f_phi_->forward(inputs.appearance);
  auto posterior = zc_->forward(appearance, /*samples=*/mode == Mode::kTrain);
  auto prior = bottleneck_->forward(pose, mode == Mode::kSampleAppearance ? nullptr : &posterior.z);
  saved_tensors_ = {std::move(posterior.means), std::move(prior.means)};
  return decoder_->forward(std::move(prior.features), pose);
}

void VUNet::check(const at::Tensor& images, const char* name, int64_t channels) const {
  if (images.defined() && images.dim() == 4 && images.size(1) == channels &&
      images.size(2) == spatial_size_ && images.size(3) == spatial_size_) {
    return;
  }
  throw Error(
      fmt::format("VUNet: expected {} of [B, {}, {}, {}], as spatial_size and the channels "
                  "of the model say, found {}",
                  name, channels, spatial_size_, spatial_size_, describe_tensor(images)));
}

STEPOP_REGISTER_MODEL(VUNet, {"A variational U-Net: one person's pose with another's appearance."});

}  // namespace stepop
