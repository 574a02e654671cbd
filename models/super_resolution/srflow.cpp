#include "models/super_resolution/srflow.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/pixel_shuffle.h>
#include <ATen/ops/pixel_unshuffle.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/checkpoint_modules.h"

namespace stepop::srflow {
namespace {

namespace nn = torch::nn;

constexpr int64_t kChannels = 3;

double pixels(int64_t height, int64_t width) { return static_cast<double>(height * width); }

bool is_true(const at::Tensor& flag, bool fallback) {
  return flag.defined() ? flag.item<double>() != 0 : fallback;
}

RrdbSizes rrdb_sizes(const Options& options, const FlowOptions& flow) {
  RrdbSizes sizes;
  sizes.inner = options.nf;
  sizes.blocks = options.nb;
  sizes.growth = options.gc;
  sizes.scale = options.scale;
  sizes.stride = options.initial_stride;
  sizes.has_bypass = options.rrdb_bypass;
  sizes.kept = flow.blocks;
  return sizes;
}

}  // namespace

SrFlow::SrFlow(const Params& params, const Config& config)
    : flow_scale_(params.flow_scale.value_or(params.scale)),
      stride_(params.initial_stride),
      trains_rrdb_(params.train_rrdb),
      quant_(params.quant) {
  const Config flow_config = config.at("flow");
  auto flow = read_parameters<FlowOptions>(flow_config);
  if (params.steps && flow.steps.size() == 1) flow.steps = {*params.steps};
  if (flow_scale_ != 4 && flow_scale_ != 8 && flow_scale_ != 16) {
    throw config.error(params.flow_scale ? "flow_scale" : "scale",
                       fmt::format("expected 4, 8 or 16, found {}", flow_scale_));
  }
  if (params.scale < flow_scale_) {
    throw config.error("scale", fmt::format("expected flow_scale, {}, or more, found {}: the flow "
                                            "needs features of each of its sizes",
                                            flow_scale_, params.scale));
  }
  if (params.rrdb_bypass && params.nf % 8 != 0) {
    throw config.error("nf", fmt::format("expected a multiple of 8, the groups of rrdb_bypass, "
                                         "found {}",
                                         params.nf));
  }
  for (const int64_t block : flow.blocks) {
    if (block < params.nb) continue;
    throw flow_config.error("stackRRDB/blocks", fmt::format("expected blocks from 0 to {}, as nb "
                                                            "is {}, found {}",
                                                            params.nb - 1, params.nb, block));
  }
  has_noise_ = flow.has_noise;
  stacks_ = flow.stacks_blocks && !flow.blocks.empty();
  levels_ = static_cast<size_t>(flow.levels);
  rrdb_ = register_module("RRDB", std::make_shared<Rrdb>(rrdb_sizes(params, flow), config));
  build(flow, params.nf);
}

void SrFlow::build(const FlowOptions& flow, int64_t channels_of_rrdb) {
  const auto all = std::make_shared<nn::Module>();
  const auto layers = std::make_shared<nn::Module>();
  const int64_t blocks = static_cast<int64_t>(flow.blocks.size());
  const CouplingSizes coupling{.features = channels_of_rrdb * (stacks_ ? blocks + 1 : 1),
                               .hidden = flow.coupling_hidden,
                               .eps = flow.coupling_eps};
  const SplitSizes split{
      .logs_eps = flow.logs_eps, .ratio = flow.consume_ratio, .loss_weight = flow.loss_weight};
  int64_t channels = kChannels;
  const auto add_step = [&](size_t level, bool is_coupled) {
    auto step = std::make_shared<FlowStep>(channels, is_coupled ? &coupling : nullptr);
    layers->register_module(std::to_string(layers_.size()), step);
    layers_.push_back({.level = level, .step = std::move(step)});
  };
  for (int64_t level = 1; level <= flow.levels; ++level) {
    const auto index = static_cast<size_t>(level - 1);
    layers_.push_back({.level = index});  // a squeeze
    channels *= 4;
    for (int64_t i = 0; i < flow.transition_steps; ++i) add_step(index, false);
    for (int64_t i = 0; i < flow.steps_of(level); ++i) {
      add_step(index, flow.coupling != "noCoupling");
    }
    if (!flow.splits || level >= flow.levels - (flow.corrects_splits ? 0 : 1)) continue;
    auto leaves = std::make_shared<Split>(channels, split);
    channels = leaves->passed();
    layers->register_module(std::to_string(layers_.size()), leaves);
    layers_.push_back({.level = index, .split = std::move(leaves)});
  }
  channels_ = channels;
  all->register_module("layers", layers);
  // Nothing reads this convolution, but files of weights have it.
  nn::Sequential unused(nn::Conv2d(
      nn::Conv2dOptions((blocks + 1) * channels_of_rrdb, flow.splits ? 96 : 384, 3).padding(1)));
  all->register_module("f", unused.ptr());
  register_module("flowUpsamplerNet", all);
}

std::vector<std::string> SrFlow::input_names() const {
  return {"gt",     "lr",          "z", "eps_std", "reverse", "epses", "reverse_with_grad",
          "lr_enc", "add_gt_noise"};
}

std::vector<at::Tensor> SrFlow::forward_all(const std::vector<at::Tensor>& inputs) {
  const auto input = [&](size_t i) { return inputs.size() > i ? inputs[i] : at::Tensor(); };
  const at::Tensor small = input(1);
  if (!small.defined()) throw Error("srflow needs its second input, the smaller image");
  for (const size_t i : {5, 7}) {
    if (!input(i).defined()) continue;
    throw Error(fmt::format("srflow: the input {} has to be None: z may have all latents",
                            input_names()[i]));
  }
  if (is_true(input(4), false)) {
    Decoding how;
    if (input(2).defined()) how.latents = {input(2)};
    if (!input(2).defined() && !input(3).defined()) {
      throw Error(
          "srflow needs z, or the standard deviation of the latents that are drawn: in: [None, lq, "
          "None, 0.8, true]");
    }
    if (input(3).defined()) how.heat = input(3).item<double>();
    how.with_gradient = is_true(input(6), false);
    how.adds_noise = is_true(input(8), true);
    Decoded made = decode(small, how);
    return {made.image, made.logdet, made.rrdb};
  }
  if (!input(0).defined()) {
    throw Error("srflow needs its first input, the image; with true as its fifth, it makes one");
  }
  Encoded made = encode(input(0), small, is_true(input(8), true));
  std::vector<at::Tensor> flat;
  for (const auto& latent : made.latents) flat.push_back(latent.flatten(1));
  return {at::cat(flat, 1), made.nll, made.logdet};
}

SrFlow::Condition SrFlow::condition(const at::Tensor& small) {
  std::optional<at::NoGradGuard> no_grad;
  if (!trains_rrdb_) no_grad.emplace();
  const RrdbFeatures features = rrdb_->forward(small);
  Condition made;
  made.out = features.out;
  const at::Tensor& last = features.last;
  made.height = last.size(2) * flow_scale_;
  made.width = last.size(3) * flow_scale_;
  const int64_t multiple = int64_t{1} << levels_;
  if (made.height % multiple != 0 || made.width % multiple != 0) {
    throw Error(fmt::format(
        "srflow has {} levels: the sides of an image have to be multiples of "
        "{}, found {} x {}, {} times those of {}",
        levels_, multiple, made.height, made.width,
        static_cast<double>(flow_scale_) / static_cast<double>(stride_), describe_tensor(small)));
  }
  const at::Tensor blocks = stacks_ ? at::cat(features.blocks, 1) : at::Tensor();
  for (size_t level = 1; level <= levels_; ++level) {
    const int64_t factor = flow_scale_ >> level;
    const std::vector<int64_t> size = {made.height >> level, made.width >> level};
    at::Tensor seen = last;
    if (factor == 0) seen = at::upsample_bilinear2d(last, size, /*align_corners=*/false);
    if (factor > 1) {
      seen =
          features.ups.at(static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(factor))) - 1);
    }
    if (stacks_) seen = at::cat({seen, at::upsample_nearest2d(blocks, size)}, 1);
    made.levels.push_back(seen);
  }
  return made;
}

Encoded SrFlow::encode(const at::Tensor& image, const at::Tensor& small, bool adds_noise) {
  const Condition seen = condition(small);
  const std::vector<int64_t> expected = {small.size(0), kChannels, seen.height, seen.width};
  if (image.sizes() != at::IntArrayRef(expected)) {
    throw Error(fmt::format("srflow: expected an image [{}] beside {}, found {}",
                            fmt::join(expected, ", "), describe_tensor(small),
                            describe_tensor(image)));
  }
  const double count = pixels(seen.height, seen.width);
  Flowed now{image, at::zeros({image.size(0)}, image.options())};
  if (adds_noise) {
    if (has_noise_) now.x = image + (at::rand(image.sizes(), image.options()) - 0.5) / quant_;
    now.logdet = now.logdet - std::log(quant_) * count;
  }
  Encoded made;
  for (auto& layer : layers_) {
    if (layer.step) {
      now = checkpointed(*layer.step, now.x, now.logdet, seen.levels.at(layer.level));
    } else if (layer.split) {
      Split::Parts parts = layer.split->forward(now);
      made.latents.push_back(std::move(parts.latent));
      now = std::move(parts.rest);
    } else {
      now.x = at::pixel_unshuffle(now.x, 2);
    }
  }
  made.latents.push_back(now.x);
  made.logdet = now.logdet;
  made.nll = -(now.logdet + standard_normal_logp(now.x)) / (std::numbers::ln2 * count);
  return made;
}

std::vector<std::vector<int64_t>> SrFlow::latent_shapes(const Condition& seen) const {
  std::vector<std::vector<int64_t>> shapes;
  for (const auto& layer : layers_) {
    if (!layer.split) continue;
    const size_t level = layer.level + 1;
    shapes.push_back({layer.split->consumed(), seen.height >> level, seen.width >> level});
  }
  shapes.push_back({channels_, seen.height >> levels_, seen.width >> levels_});
  return shapes;
}

std::vector<at::Tensor> SrFlow::latents_of(const Condition& seen, const at::Tensor& small,
                                           const Decoding& how) const {
  const auto shapes = latent_shapes(seen);
  std::vector<at::Tensor> made(shapes.size());
  if (how.latents.empty()) {
    std::vector<int64_t> shape = shapes.back();
    shape.insert(shape.begin(), small.size(0));
    made.back() = how.heat == 0 ? at::zeros(shape, small.options())
                                : at::normal(0, how.heat, shape, {}, small.scalar_type(),
                                             c10::nullopt, small.device(), c10::nullopt);
    return made;
  }
  if (how.latents.size() == shapes.size() && how.latents.front().dim() == 4) {
    made = how.latents;
  } else if (how.latents.size() == 1 && how.latents.front().dim() == 2) {
    int64_t begin = 0;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const int64_t length = shapes[i][0] * shapes[i][1] * shapes[i][2];
      if (begin + length > how.latents.front().size(1)) break;
      std::vector<int64_t> shape = shapes[i];
      shape.insert(shape.begin(), -1);
      made[i] = how.latents.front().narrow(1, begin, length).reshape(shape);
      begin += length;
    }
    if (begin != how.latents.front().size(1)) made.back().reset();
  } else if (how.latents.size() == 1) {
    made.back() = how.latents.front();
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::vector<int64_t> shape = shapes[i];
    shape.insert(shape.begin(), small.size(0));
    const bool is_drawn = i + 1 < shapes.size() && !made[i].defined();
    if (is_drawn || (made[i].defined() && made[i].sizes() == at::IntArrayRef(shape))) continue;
    throw Error(
        fmt::format("srflow: expected all latents, [{}, {}], or the last one, [{}, {}], found {}",
                    small.size(0), kChannels * seen.height * seen.width, small.size(0),
                    fmt::join(shapes.back(), ", "), describe_tensor(how.latents.front())));
  }
  return made;
}

Decoded SrFlow::decode(const at::Tensor& small, const Decoding& how) {
  std::optional<at::NoGradGuard> no_grad;
  if (!how.with_gradient) no_grad.emplace();
  const Condition seen = condition(small);
  std::vector<at::Tensor> latents = latents_of(seen, small, how);
  Flowed now{latents.back(), at::zeros({small.size(0)}, small.options())};
  latents.pop_back();
  if (how.adds_noise) now.logdet = now.logdet + std::log(quant_) * pixels(seen.height, seen.width);
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    if (layer.step) {
      now = layer.step->reversed(now, seen.levels.at(layer.level));
    } else if (layer.split) {
      now = layer.split->reversed(now, latents.back(), how.heat);
      latents.pop_back();
    } else {
      now.x = at::pixel_shuffle(now.x, 2);
    }
  }
  return {now.x, now.logdet, seen.out};
}

STEPOP_REGISTER_MODEL_AS(
    "srflow", SrFlow,
    {"SRFlow: an image and a smaller one to normal numbers and their loss, and back."});

}  // namespace stepop::srflow
