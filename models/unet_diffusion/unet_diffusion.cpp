#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "models/unet_diffusion/blocks.h"
#include "models/unet_diffusion/options.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/network.h"

namespace stepop::unet_diffusion {
namespace {

namespace nn = torch::nn;

/// The options of a network: below `args`, as in DL-Art-School, or next to its class.
Config args_of(const Config& params) { return params.has("args") ? params.at("args") : params; }

/// The UNet of guided-diffusion (Dhariwal and Nichol, 2021): x [B, in_channels, H, W], timesteps
/// [B], and with `num_classes` the classes y [B], to [B, out_channels, H, W]. Parameters have the
/// original's names.
class UNetModel : public MultiNetwork {
 public:
  using Params = Options;

  explicit UNetModel(const Config& config) {
    const Config args = args_of(config);
    build(read_parameters<Params>(args), args, 0);
  }

  std::vector<std::string> input_names() const override { return {"x", "timesteps", "y"}; }

  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override {
    return {run(inputs.at(0), inputs.at(1), inputs.size() > 2 ? inputs[2] : at::Tensor())};
  }

 protected:
  UNetModel() = default;

  /// `more_channels`: the number of input channels in addition to `in_channels`.
  void build(const Params& params, const Config& args, int64_t more_channels) {
    take(params, args);
    const int64_t in = params.in_channels + more_channels;
    in_channels_ = in;
    in_channels_key_ = join_path(args.path(), "in_channels");
    const int64_t embedding = channels_ * 4;
    const auto time = register_module("time_embed", std::make_shared<nn::Module>());
    time_first_ = time->register_module("0", nn::Linear(channels_, embedding));
    time_second_ = time->register_module("2", nn::Linear(embedding, embedding));
    if (classes_ > 0) labels_ = register_module("label_emb", nn::Embedding(classes_, embedding));
    try {
      build_blocks(in);
    } catch (const Error& error) {
      throw args.error("", error.what());
    }
    const auto out = register_module("out", std::make_shared<nn::Module>());
    out_norm_ = out->register_module("0", normalization(channels_));
    out_convolution_ = out->register_module(
        "2", std::make_shared<Convolution>(dims_, channels_, params.out_channels, 3));
    out_convolution_->zero();
  }

  at::Tensor run(const at::Tensor& x, const at::Tensor& timesteps, const at::Tensor& y) {
    check(x, y);
    at::Tensor embedding = time_second_->forward(
        at::silu(time_first_->forward(timestep_embedding(timesteps, channels_))));
    if (labels_) embedding = embedding + labels_->forward(y);
    if (has_raw_embedding_) embedding = embedding + y;
    std::vector<at::Tensor> seen;
    at::Tensor h = x;
    for (const auto& block : input_blocks_) {
      h = checkpointed(*block, h, embedding);
      seen.push_back(h);
    }
    h = checkpointed(*middle_, h, embedding);
    for (const auto& block : output_blocks_) {
      h = checkpointed(*block, at::cat({h, seen.back()}, 1), embedding);
      seen.pop_back();
    }
    return out_convolution_->apply(at::silu(out_norm_->forward(h)));
  }

  int64_t dims() const { return dims_; }

  /// What `run` gets as x, for messages.
  virtual std::string all_of_x() const { return "x"; }

 private:
  void take(const Params& params, const Config& args) {
    channels_ = params.model_channels;
    if (channels_ % 4 != 0) {
      throw args.error("model_channels",
                       "expected a multiple of 4, best of 32: they are normalized in groups");
    }
    res_blocks_ = params.num_res_blocks;
    dropout_ = params.dropout;
    multipliers_ = params.channel_mult;
    if (multipliers_.empty() || multipliers_.front() != 1) {
      throw args.error("channel_mult",
                       "expected a number of 1 or more for each level, the first of them 1");
    }
    resamples_by_convolution_ = params.conv_resample;
    dims_ = params.dims;
    classes_ = params.num_classes.value_or(0);
    if (params.use_fp16) {
      throw args.error("use_fp16", "precision: bfloat16 of the config is what is there instead");
    }
    head_channels_ = params.num_head_channels;
    heads_ = params.num_heads;
    heads_upsample_ = params.num_heads_upsample == -1 ? heads_ : params.num_heads_upsample;
    if (heads_upsample_ < 1) throw args.error("num_heads_upsample", "expected 1 or more, or -1");
    if (head_channels_ == 0) {
      throw args.error("num_head_channels", "expected 1 or more, or -1");
    }
    scales_ = params.use_scale_shift_norm;
    resizes_in_blocks_ = params.resblock_updown;
    has_new_order_ = params.use_new_attention_order;
    has_raw_embedding_ = params.use_raw_y_as_embedding;
    if (has_raw_embedding_ && classes_ > 0) {
      throw args.error("use_raw_y_as_embedding", "with num_classes y is a class: give one of them");
    }
    attention_ = params.attention_resolutions;
    check_attention(args);
  }

  void check_attention(const Config& args) const {
    std::vector<std::string> rates;
    for (size_t level = 0; level < multipliers_.size(); ++level) {
      rates.push_back(std::to_string(int64_t{1} << level));
    }
    for (const int64_t rate : attention_) {
      if (std::find(rates.begin(), rates.end(), std::to_string(rate)) != rates.end()) continue;
      throw args.error("attention_resolutions",
                       fmt::format("no level is {} times smaller than the input; there are: {}",
                                   rate, list_text(rates)));
    }
  }

  std::shared_ptr<Layer> res_block(int64_t in, int64_t out, Resize resize = Resize::kNone) const {
    return std::make_shared<ResBlock>(ResBlockOptions{.in = in,
                                                      .out = out,
                                                      .embedding = channels_ * 4,
                                                      .dropout = dropout_,
                                                      .dims = dims_,
                                                      .use_scale_shift_norm = scales_,
                                                      .resize = resize});
  }

  std::shared_ptr<Layer> attention(int64_t channels, int64_t heads) const {
    if (head_channels_ != -1 && channels % head_channels_ != 0) {
      throw Error(fmt::format("num_head_channels: {} channels are not a multiple of {}", channels,
                              head_channels_));
    }
    const int64_t count = head_channels_ == -1 ? heads : channels / head_channels_;
    return std::make_shared<AttentionBlock>(channels, count, has_new_order_);
  }

  bool attends_at(int64_t rate) const {
    return std::find(attention_.begin(), attention_.end(), rate) != attention_.end();
  }

  void build_blocks(int64_t in) {
    const auto inputs = register_module("input_blocks", std::make_shared<nn::Module>());
    const auto add = [](nn::Module& list, std::vector<std::shared_ptr<Sequence>>& blocks,
                        const std::vector<std::shared_ptr<Layer>>& layers) {
      auto block = std::make_shared<Sequence>();
      for (const auto& layer : layers) block->add(layer);
      blocks.push_back(list.register_module(std::to_string(blocks.size()), block));
    };
    add(*inputs, input_blocks_, {std::make_shared<Convolution>(dims_, in, channels_, 3)});
    std::vector<int64_t> seen = {channels_};
    int64_t now = channels_;
    int64_t rate = 1;
    for (size_t level = 0; level < multipliers_.size(); ++level) {
      for (int64_t i = 0; i < res_blocks_; ++i) {
        std::vector<std::shared_ptr<Layer>> layers = {
            res_block(now, multipliers_[level] * channels_)};
        now = multipliers_[level] * channels_;
        if (attends_at(rate)) layers.push_back(attention(now, heads_));
        add(*inputs, input_blocks_, layers);
        seen.push_back(now);
      }
      if (level + 1 == multipliers_.size()) break;
      std::shared_ptr<Layer> down;
      if (resizes_in_blocks_) {
        down = res_block(now, now, Resize::kDown);
      } else {
        down = std::make_shared<Downsample>(now, resamples_by_convolution_, dims_);
      }
      add(*inputs, input_blocks_, {down});
      seen.push_back(now);
      rate *= 2;
    }
    middle_ = std::make_shared<Sequence>();
    middle_->add(res_block(now, now));
    middle_->add(attention(now, heads_));
    middle_->add(res_block(now, now));
    register_module("middle_block", middle_);
    const auto outputs = register_module("output_blocks", std::make_shared<nn::Module>());
    for (size_t level = multipliers_.size(); level-- > 0;) {
      for (int64_t i = 0; i <= res_blocks_; ++i) {
        std::vector<std::shared_ptr<Layer>> layers = {
            res_block(now + seen.back(), multipliers_[level] * channels_)};
        seen.pop_back();
        now = multipliers_[level] * channels_;
        if (attends_at(rate)) layers.push_back(attention(now, heads_upsample_));
        if (level > 0 && i == res_blocks_) {
          if (resizes_in_blocks_) {
            layers.push_back(res_block(now, now, Resize::kUp));
          } else {
            layers.push_back(std::make_shared<Upsample>(now, resamples_by_convolution_, dims_));
          }
          rate /= 2;
        }
        add(*outputs, output_blocks_, layers);
      }
    }
  }

  void check(const at::Tensor& x, const at::Tensor& y) const {
    if (x.dim() != 2 + dims_ || x.size(1) != in_channels_) {
      throw Error(fmt::format("the UNet: expected {} [B, {}, {}], by {}, found {}", all_of_x(),
                              in_channels_, dims_ == 1 ? "T" : "H, W", in_channels_key_,
                              describe_tensor(x)));
    }
    int64_t multiple = 1;
    for (size_t level = 1; level < multipliers_.size(); ++level) multiple *= dims_ == 1 ? 4 : 2;
    for (int64_t i = 2; i < x.dim(); ++i) {
      if (x.size(i) % multiple == 0) continue;
      throw Error(fmt::format("the UNet has {} levels: sizes have to be multiples of {}, found {}",
                              multipliers_.size(), multiple, describe_tensor(x)));
    }
    if (labels_ && (!y.defined() || y.dim() != 1 || y.scalar_type() != at::kLong)) {
      throw Error(
          fmt::format("the UNet has num_classes: its input y is the classes, int64 [B], "
                      "found {}",
                      y.defined() ? describe_tensor(y) : "none"));
    }
    if (has_raw_embedding_ && !y.defined()) {
      throw Error("the UNet has use_raw_y_as_embedding: it needs the input y");
    }
    if (!labels_ && !has_raw_embedding_ && y.defined()) {
      throw Error("the UNet has no num_classes: it cannot use the input y");
    }
  }

  int64_t channels_ = 0;
  int64_t in_channels_ = 0;  ///< Of all that comes in.
  std::string in_channels_key_;
  int64_t res_blocks_ = 0;
  double dropout_ = 0;
  std::vector<int64_t> multipliers_;
  std::vector<int64_t> attention_;  ///< The reduction factors of the levels that have attention.
  bool resamples_by_convolution_ = true;
  int64_t dims_ = 2;
  int64_t classes_ = 0;  ///< 0 without classes.
  int64_t heads_ = 1;
  int64_t heads_upsample_ = 1;
  int64_t head_channels_ = -1;
  bool scales_ = false;
  bool resizes_in_blocks_ = false;
  bool has_new_order_ = false;
  bool has_raw_embedding_ = false;

  nn::Linear time_first_{nullptr};
  nn::Linear time_second_{nullptr};
  nn::Embedding labels_{nullptr};
  std::vector<std::shared_ptr<Sequence>> input_blocks_;
  std::shared_ptr<Sequence> middle_;
  std::vector<std::shared_ptr<Sequence>> output_blocks_;
  nn::GroupNorm out_norm_{nullptr};
  std::shared_ptr<Convolution> out_convolution_;
};

/// The same network with two further inputs: a smaller image, `low_res` [B, in_channels, h, w],
/// which is resized to the size of x, and in further channels the strength of its corruption,
/// `corruption_factor` [B, num_corruptions], by default 0.
class SuperResModel : public UNetModel {
 public:
  struct Params : UNetModel::Params {
    int64_t num_corruptions = 0;

    void declare(Parameters& p) {
      UNetModel::Params::declare(p);
      p.add("num_corruptions", num_corruptions, "how many numbers say how low_res was corrupted",
            at_least(0));
    }
  };

  explicit SuperResModel(const Config& config) {
    const Config args = args_of(config);
    const auto params = read_parameters<Params>(args);
    corruptions_ = params.num_corruptions;
    build(params, args, params.in_channels + corruptions_);
    if (dims() != 2) throw args.error("dims", "expected 2: it makes images larger");
  }

  std::vector<std::string> input_names() const override {
    return {"x", "timesteps", "low_res", "corruption_factor", "y"};
  }

  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override {
    const auto input = [&](size_t i) { return inputs.size() > i ? inputs[i] : at::Tensor(); };
    const at::Tensor& x = inputs.at(0);
    const at::Tensor low = input(2);
    if (!low.defined() || low.dim() != 4) {
      throw Error(
          fmt::format("unet_diffusion needs the input low_res, images [B, C, h, w], found "
                      "{}; UNetModel is the network without",
                      low.defined() ? describe_tensor(low) : "none"));
    }
    std::vector<at::Tensor> all = {
        x, at::upsample_bilinear2d(low, {x.size(2), x.size(3)}, /*align_corners=*/false)};
    if (corruptions_ > 0) all.push_back(corruption(x, input(3)));
    return {run(at::cat(all, 1), inputs.at(1), input(4))};
  }

 private:
  /// [B, num_corruptions, H, W]
  at::Tensor corruption(const at::Tensor& x, const at::Tensor& factor) const {
    if (!factor.defined()) {
      return at::zeros({x.size(0), corruptions_, x.size(2), x.size(3)}, x.options());
    }
    if (factor.dim() != 2 || factor.size(1) < corruptions_) {
      throw Error(fmt::format("corruption_factor: expected [B, {}], found {}", corruptions_,
                              describe_tensor(factor)));
    }
    return factor.narrow(1, 0, corruptions_)
        .unsqueeze(-1)
        .unsqueeze(-1)
        .expand({-1, -1, x.size(2), x.size(3)});
  }

  std::string all_of_x() const override {
    return corruptions_ > 0 ? "x, low_res and corruption_factor together"
                            : "x and low_res together";
  }

  int64_t corruptions_ = 0;
};

STEPOP_REGISTER_MODEL(UNetModel, {"The UNet of guided-diffusion: x and timesteps to noise."});
STEPOP_REGISTER_MODEL_AS("unet_diffusion", SuperResModel,
                         {"The same for super-resolution: it also sees the image low_res."});

}  // namespace
}  // namespace stepop::unet_diffusion
