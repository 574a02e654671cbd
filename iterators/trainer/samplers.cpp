// Samplers of images and videos.
#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iterators/trainer/model_inputs.h"
#include "iterators/trainer/model_sampler.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_grid.h"
#include "runtime/train/iterator/splits.h"

namespace stepop {
namespace {

constexpr std::string_view kAboutSeed = "of the noise, which is the same in each log";
constexpr std::string_view kAboutRate = "at which videos are shown, if the model makes them";
constexpr int64_t kSmallSide = 64;  // pixels of an image in a large grid

std::vector<int64_t> first_numbers(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

/// The first examples of a batch.
Batch first_examples(const Batch& batch, int64_t count) {
  count = std::min(count, batch.size());
  OrderedMap<at::Tensor> tensors;
  OrderedMap<std::vector<std::string>> texts;
  for (const auto& [key, tensor] : batch.tensors()) tensors.set(key, tensor.slice(0, 0, count));
  for (const auto& [key, all] : batch.texts()) texts.set(key, {all.begin(), all.begin() + count});
  const auto& indices = batch.indices();
  return {std::move(tensors), std::move(texts), {indices.begin(), indices.begin() + count}};
}

/// Samples of `model` under `conditions`, with random numbers that depend only on `seed`, so that
/// logs of different steps can be compared. A log op has its own generators, so the training is
/// unaffected.
at::Tensor samples_of(LossModel& model, const Batch& conditions, int64_t seed,
                      const c10::Device& device) {
  at::manual_seed(static_cast<uint64_t>(seed));
  const at::Tensor samples = model.sample(conditions.to(device));
  if (samples.defined() && samples.dim() > 0 && samples.size(0) == conditions.size()) {
    return samples;
  }
  throw Error(fmt::format("the model was asked for {} samples, its function sample returned {}",
                          conditions.size(),
                          samples.defined() ? describe_tensor(samples) : "an undefined tensor"));
}

/// Images [N, C, H, W], or videos [N, T, C, H, W], in rows with captions below.
Logs captioned(const at::Tensor& samples, const std::vector<std::string>& captions, int64_t columns,
               int64_t least_side, double frames_per_second) {
  if (samples.dim() != 5 || samples.size(1) == 0) {
    return {.images = {{"samples", captioned_rows(samples, captions, columns, least_side)}}};
  }
  std::vector<at::Tensor> frames;
  for (const at::Tensor& images : samples.unbind(1)) {
    frames.push_back(captioned_rows(images, captions, columns, least_side));
  }
  return {.videos = {{"samples", {at::stack(frames, 1), frames_per_second}}}};
}

/// Generates images or videos from noise; with classes, a row for each class.
class NoiseToImage : public ModelSampler {
 public:
  struct Params {
    int64_t classes = 0;
    int64_t count = 8;
    std::string key = "class";
    int64_t seed = 1;
    double frames_per_second = 8;
    Postprocessor postprocess;

    void declare(Parameters& p) {
      p.add("classes", classes, "how many there are; 0: the model has no classes", at_least(0));
      p.add("count", count, "images of each class", at_least(1));
      p.add("seed", seed, kAboutSeed, at_least(0));
      p.add("key", key, "the name under which the model takes classes");
      p.add("frames_per_second", frames_per_second, kAboutRate);
      add_postprocessor(p, postprocess, "what turns samples into images or videos in [-1, 1]");
    }
  };

  NoiseToImage(const Params& params, const Context& context)
      : context_(context),
        classes_(params.classes),
        count_(params.count),
        seed_(params.seed),
        key_(params.key),
        frames_per_second_(params.frames_per_second),
        post_(params.postprocess) {}

  Logs sample(LossModel& model) override {
    const int64_t rows = std::max<int64_t>(classes_, 1);
    OrderedMap<at::Tensor> conditions;
    std::vector<std::string> captions;
    if (classes_ > 0) {
      conditions.set(key_, at::arange(classes_, at::kLong).repeat_interleave(count_));
      for (int64_t i = 0; i < classes_ * count_; ++i) {
        captions.push_back(i % count_ == 0 ? fmt::format("{} {}", key_, i / count_) : "");
      }
    }
    const Batch batch(std::move(conditions), {}, first_numbers(rows * count_));
    const at::Tensor samples = post_(samples_of(model, batch, seed_, context_.device));
    const int64_t columns =
        classes_ > 0 ? count_ : static_cast<int64_t>(std::ceil(std::sqrt(count_)));
    return captioned(samples, captions, columns, kSmallSide, frames_per_second_);
  }

 private:
  const Context& context_;
  int64_t classes_;
  int64_t count_;
  int64_t seed_;
  std::string key_;
  double frames_per_second_;
  Postprocessor post_;
};

/// Generates images or videos for prompts, which become the captions.
class TextToImage : public ModelSampler {
 public:
  struct Params {
    std::vector<std::string> prompts;
    std::string key = "prompt";
    int64_t seed = 1;
    double frames_per_second = 8;
    Preprocessor preprocess;
    Postprocessor postprocess;

    void declare(Parameters& p) {
      p.require("prompts", prompts, "a list of texts");
      p.add("key", key, "the name under which the model takes them");
      p.add("seed", seed, kAboutSeed, at_least(0));
      p.add("frames_per_second", frames_per_second, kAboutRate);
      add_preprocessor(p, preprocess, "what makes tokens of them, such as bytes");
      add_postprocessor(p, postprocess, "what turns samples into images or videos in [-1, 1]");
    }
  };

  TextToImage(const Params& params, const Config& config, const Context& context)
      : context_(context), p_(params) {
    if (p_.prompts.empty()) throw config.error("prompts", "expected at least one text");
  }

  Logs sample(LossModel& model) override {
    const auto count = static_cast<int64_t>(p_.prompts.size());
    const Batch batch = p_.preprocess(Batch({}, {{p_.key, p_.prompts}}, first_numbers(count)));
    const at::Tensor samples = p_.postprocess(samples_of(model, batch, p_.seed, context_.device));
    return captioned(samples, p_.prompts, 0, kThumbnailSide, p_.frames_per_second);
  }

 private:
  const Context& context_;
  Params p_;
};

/// The fixed examples of a split and their reconstructions.
class Reconstructions {
 public:
  struct Params {
    std::string split = "validation";  ///< Without that split, train.
    std::string key;
    int64_t count = 4;
    Preprocessor preprocess;
    Postprocessor postprocess;

    void declare(Parameters& p, std::string_view about_key, std::string_view about_postprocess) {
      const Config* config =
          p.describe({"split",
                      split,
                      "of which examples are shown, always the same ones; without it train",
                      false,
                      {.kind = "text"}});
      if (config != nullptr) {
        const bool is_there = config->root().has("datasets/" + split);
        split = config->get("split", is_there ? split : "train");
      }
      p.add("key", key, about_key);
      p.add("count", count, "how many", at_least(1));
      add_preprocessor(p, preprocess, "what is done with the batch before");
      add_postprocessor(p, postprocess, about_postprocess);
    }
  };

  Reconstructions(const Params& params, const Context& context) : context_(context), p_(params) {}

  /// Originals and reconstructions, [N, ...] each.
  std::pair<at::Tensor, at::Tensor> make(LossModel& model) const {
    const Batch examples = first_examples(context_.splits.fixed_examples(p_.split), p_.count);
    const Batch inputs = ModelInputs(context_.config, model).of(p_.preprocess(examples));
    const at::Tensor original = p_.postprocess(inputs[p_.key]);
    const at::Tensor made = model.reconstruct(inputs);
    if (!made.defined() || made.sizes() != inputs[p_.key].sizes()) {
      throw Error(fmt::format("the model's function reconstruct made {} of {}",
                              made.defined() ? describe_tensor(made) : "an undefined tensor",
                              describe_tensor(inputs[p_.key])));
    }
    return {original, p_.postprocess(made)};
  }

 private:
  const Context& context_;
  Params p_;
};

/// Shows images beside their reconstructions.
class ImageToImage : public ModelSampler {
 public:
  struct Params : Reconstructions::Params {
    void declare(Parameters& p) {
      key = "image";
      Reconstructions::Params::declare(p, "the model's name for the images [B, C, H, W]",
                                       "what turns both into images in [-1, 1]");
    }
  };

  ImageToImage(const Params& params, const Context& context) : reconstructions_(params, context) {}

  Logs sample(LossModel& model) override {
    const auto [original, made] = reconstructions_.make(model);
    std::vector<std::string> captions;
    for (int64_t i = 0; i < original.size(0); ++i) {
      captions.push_back(fmt::format("{} original", i));
      captions.push_back(fmt::format("{} made", i));
    }
    constexpr int64_t kColumns = 4;
    const at::Tensor pairs =
        at::stack({original, made.to(original.scalar_type())}, 1).flatten(0, 1);
    return {
        .images = {{"reconstructions", captioned_rows(pairs, captions, kColumns, kThumbnailSide)}}};
  }

 private:
  Reconstructions reconstructions_;
};

/// Shows videos, each with its reconstruction on the right.
class VideoToVideo : public ModelSampler {
 public:
  struct Params : Reconstructions::Params {
    double frames_per_second = 8;

    void declare(Parameters& p) {
      key = "video";
      Reconstructions::Params::declare(p, "the model's name for the videos [B, T, C, H, W]",
                                       "what turns both into videos in [-1, 1]");
      p.add("frames_per_second", frames_per_second, "at which they are shown");
    }
  };

  VideoToVideo(const Params& params, const Context& context)
      : reconstructions_(params, context), frames_per_second_(params.frames_per_second) {}

  Logs sample(LossModel& model) override {
    const auto [original, made] = reconstructions_.make(model);
    const at::Tensor pairs = at::cat({original, made.to(original.scalar_type())}, -1);
    return {.videos = {{"reconstructions", {pairs, frames_per_second_}}}};
  }

 private:
  Reconstructions reconstructions_;
  double frames_per_second_;
};

STEPOP_REGISTER_MODEL_SAMPLER(NoiseToImage,
                              {"New images or videos from noise, a row for each class."});
STEPOP_REGISTER_MODEL_SAMPLER(TextToImage,
                              {"New images or videos for prompts, which are their captions."});
STEPOP_REGISTER_MODEL_SAMPLER(ImageToImage, {"Images beside what the model makes of them."});
STEPOP_REGISTER_MODEL_SAMPLER(VideoToVideo,
                              {"Videos beside what the model makes of them, as an animated PNG."});

}  // namespace
}  // namespace stepop
