#include "models/vunet/parts.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/tanh.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "runtime/train/networks/checkpoint_modules.h"

namespace stepop::vunet {

Encoder::Encoder(const Options& options, int64_t image_channels)
    : stages_(options.stages),
      in_op_(register_module("in_op", make_conv(options, image_channels, options.nf_start))),
      blocks_(register_module("blocks", std::make_shared<Modules<ResBlock>>())),
      downs_(register_module("downs", std::make_shared<Modules<Down>>())) {
  int64_t nf = options.nf_start;
  for (int64_t stage = 1; stage <= stages_; ++stage) {
    if (stage > 1) {
      const int64_t next = std::min(2 * nf, options.nf_max);
      downs_->add(stage_name(stage), std::make_shared<Down>(options, nf, next));
      nf = next;
    }
    for (const int64_t block : {1, 2}) {
      blocks_->add(block_name(stage, block),
                   std::make_shared<ResBlock>(options, nf, /*has_skip=*/false));
    }
  }
}

Features Encoder::forward(const at::Tensor& images) const {
  Features features;
  at::Tensor h = in_op_->forward(images);  // [B, nf_start, W, W]
  for (int64_t stage = 1; stage <= stages_; ++stage) {
    if (stage > 1) h = checkpointed((*downs_)[stage_name(stage)], h);
    for (const int64_t block : {1, 2}) {
      const std::string name = block_name(stage, block);
      h = checkpointed((*blocks_)[name], h);
      features.set(name, h);
    }
  }
  return features;  // the last [B, nf_max, 1, 1]
}

at::Tensor sample_around(const at::Tensor& mean) { return mean + at::randn_like(mean); }

ZConverter::ZConverter(const Options& options) : stages_(options.stages) {
  const int64_t nf = options.nf_max;
  blocks_ = register_module("blocks", std::make_shared<Modules<ResBlock>>());
  for (const char* name : {"0", "1", "2"}) {
    blocks_->add(name, std::make_shared<ResBlock>(options, nf, /*has_skip=*/true));
  }
  conv1x1_ = register_module("conv1x1", make_conv(options, nf, nf));
  up_ = register_module("up", std::make_shared<Up>(options, nf, nf));
  channel_norm_ = register_module("channel_norm", make_conv(options, 2 * nf, nf));
}

ZConverter::Posterior ZConverter::forward(const Features& appearance, bool samples) const {
  const auto drawn = [&](const at::Tensor& mean) { return samples ? sample_around(mean) : mean; };
  const std::string last = stage_name(stages_);
  const std::string before = stage_name(stages_ - 1);
  Posterior posterior;

  const at::Tensor& skip = appearance.at(last + "_1");
  at::Tensor h = conv1x1_->forward(appearance.at(last + "_2"));
  h = checkpointed((*blocks_)["0"], h, skip);  // [B, nf, 1, 1]
  posterior.means.set(last, h);
  const at::Tensor z = posterior.z.set(last, drawn(h));

  h = checkpointed((*blocks_)["1"], h, channel_norm_->forward(at::cat({skip, z}, 1)));
  h = up_->forward(h);
  h = checkpointed((*blocks_)["2"], h, appearance.at(before + "_1"));  // [B, nf, 2, 2]
  const at::Tensor mean = posterior.means.set(before, space_to_depth(h));
  posterior.z.set(before, drawn(mean));
  return posterior;
}

Bottleneck::Bottleneck(const Options& options) : stages_(options.stages) {
  const int64_t nf = options.nf_max;
  blocks_ = register_module("blocks", std::make_shared<Modules<ResBlock>>());
  channel_norm_ = register_module("channel_norm", std::make_shared<Modules<Conv>>());
  conv1x1_ = register_module("conv1x1", make_conv(options, nf, nf));
  up_ = register_module("up", std::make_shared<Up>(options, nf, nf));
  for (const int64_t stage : {stages_, stages_ - 1}) {
    channel_norm_->add(stage_name(stage), make_conv(options, 2 * nf, nf));
    for (const int64_t block : {1, 2}) {
      blocks_->add(block_name(stage, block),
                   std::make_shared<ResBlock>(options, nf, /*has_skip=*/true));
    }
  }
  auto autos = register_module("auto_blocks", std::make_shared<Modules<ResBlock>>());
  for (size_t i = 0; i < kGroups; ++i) {
    auto_blocks_[i] = std::make_shared<ResBlock>(options, nf, /*has_skip=*/i > 0);
    autos->add(std::to_string(i), auto_blocks_[i]);
  }
  // No group follows the last group, so its block is never used. The block exists because
  // checkpoints of the original have it.
  for (auto& parameter : auto_blocks_.back()->parameters()) parameter.set_requires_grad(false);
  param_converter_ = register_module("param_converter", make_conv(options, 4 * nf, nf));
}

Bottleneck::Output Bottleneck::forward(const Features& pose, const Latents* z) const {
  Output output;
  at::Tensor h = conv1x1_->forward(pose.at(block_name(stages_, 2)));  // [B, nf, 1, 1]
  for (const int64_t stage : {stages_, stages_ - 1}) {
    const std::string name = stage_name(stage);
    const bool is_last = stage == stages_;
    h = checkpointed((*blocks_)[name + "_2"], h, pose.at(name + "_2"));
    at::Tensor chosen = z != nullptr ? z->at(name) : at::Tensor();
    if (is_last) {
      output.means.set(name, h);
      if (!chosen.defined()) chosen = sample_around(h);
    } else {
      Stage prior = groups(h, chosen);
      output.means.set(name, prior.mean);
      if (!chosen.defined()) chosen = prior.z;
      chosen = depth_to_space(chosen);  // [B, nf, 2, 2]
    }
    h = (*channel_norm_)[name].forward(at::cat({h, chosen}, 1));
    h = checkpointed((*blocks_)[name + "_1"], h, pose.at(name + "_1"));
    if (is_last) h = up_->forward(h);
  }
  output.features = h;
  return output;
}

/// Each group's mean depends on the groups before it: on the groups of `z` if it is given, else on
/// samples. `h` is [B, nf, 2, 2].
Bottleneck::Stage Bottleneck::groups(const at::Tensor& h, const at::Tensor& z) const {
  const auto given = z.defined() ? z.chunk(kGroups, 1) : std::vector<at::Tensor>();
  std::vector<at::Tensor> means;
  std::vector<at::Tensor> samples;
  at::Tensor p = param_converter_->forward(space_to_depth(auto_blocks_[0]->forward(h)));
  for (size_t group = 0; group < kGroups; ++group) {
    means.push_back(p);  // [B, nf, 1, 1]
    if (given.empty()) samples.push_back(sample_around(p));
    if (group + 1 == kGroups) break;
    const at::Tensor& feedback = given.empty() ? samples.back() : given[group];
    // The first block has no skip input: the second mean follows from the first alone.
    p = group == 0 ? auto_blocks_[0]->forward(p) : auto_blocks_[group]->forward(p, feedback);
  }
  return {at::cat(means, 1), samples.empty() ? at::Tensor() : at::cat(samples, 1)};
}

Decoder::Decoder(const Options& options, int64_t image_channels, bool has_tanh)
    : stages_(options.stages), has_tanh_(has_tanh) {
  blocks_ = register_module("blocks", std::make_shared<Modules<ResBlock>>());
  ups_ = register_module("ups", std::make_shared<Modules<Up>>());
  for (int64_t stage = stages_ - 2; stage >= 1; --stage) {
    const int64_t nf = stage == 1 ? options.nf_max / 2 : options.nf_max;
    ups_->add(stage_name(stage + 1), std::make_shared<Up>(options, options.nf_max, nf));
    for (const int64_t block : {2, 1}) {
      blocks_->add(block_name(stage, block),
                   std::make_shared<ResBlock>(options, nf, /*has_skip=*/true));
    }
  }
  final_layer_ =
      register_module("final_layer", make_conv(options, options.nf_max / 2, image_channels));
}

at::Tensor Decoder::forward(at::Tensor h, const Features& pose) const {
  for (int64_t stage = stages_ - 2; stage >= 1; --stage) {
    h = checkpointed((*ups_)[stage_name(stage + 1)], h);
    for (const int64_t block : {2, 1}) {
      const std::string name = block_name(stage, block);
      h = checkpointed((*blocks_)[name], h, pose.at(name));
    }
  }
  h = final_layer_->forward(h);
  return has_tanh_ ? at::tanh(h) : h;
}

}  // namespace stepop::vunet
