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

/// Generates images from noise; with classes, a row for each class.
class NoiseToImage : public ModelSampler {
 public:
  NoiseToImage(const Config& params, const Context& context)
      : context_(context),
        classes_(params.get_at_least("classes", 0, 0)),
        count_(params.get_at_least("count", 1, 8)),
        seed_(params.get_at_least("seed", 0, 1)),
        key_(params.get("key", "class")),
        post_(read_postprocessor(params)) {}

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
    const at::Tensor images = post_(samples_of(model, batch, seed_, context_.device));
    const int64_t columns =
        classes_ > 0 ? count_ : static_cast<int64_t>(std::ceil(std::sqrt(count_)));
    return {.images = {{"samples", captioned_rows(images, captions, columns, kSmallSide)}}};
  }

 private:
  const Context& context_;
  int64_t classes_;
  int64_t count_;
  int64_t seed_;
  std::string key_;
  Postprocessor post_;
};

/// Generates images for prompts, which become the captions.
class TextToImage : public ModelSampler {
 public:
  TextToImage(const Config& params, const Context& context)
      : context_(context),
        prompts_(params.get<std::vector<std::string>>("prompts")),
        key_(params.get("key", "prompt")),
        seed_(params.get_at_least("seed", 0, 1)),
        pre_(read_preprocessor(params)),
        post_(read_postprocessor(params)) {
    if (prompts_.empty()) throw params.error("prompts", "expected at least one text");
  }

  Logs sample(LossModel& model) override {
    const auto count = static_cast<int64_t>(prompts_.size());
    const Batch batch = pre_(Batch({}, {{key_, prompts_}}, first_numbers(count)));
    const at::Tensor images = post_(samples_of(model, batch, seed_, context_.device));
    return {.images = {{"samples", captioned_rows(images, prompts_, 0, kThumbnailSide)}}};
  }

 private:
  const Context& context_;
  std::vector<std::string> prompts_;
  std::string key_;
  int64_t seed_;
  Preprocessor pre_;
  Postprocessor post_;
};

/// The fixed examples of a split and their reconstructions.
class Reconstructions {
 public:
  Reconstructions(const Config& params, const Context& context, const char* key)
      : context_(context),
        split_(params.get("split",
                          context.config.has("datasets/validation") ? "validation" : "train")),
        key_(params.get("key", key)),
        count_(params.get_at_least("count", 1, 4)),
        pre_(read_preprocessor(params)),
        post_(read_postprocessor(params)) {}

  /// Originals and reconstructions, [N, ...] each.
  std::pair<at::Tensor, at::Tensor> make(LossModel& model) const {
    const Batch examples = first_examples(context_.splits.fixed_examples(split_), count_);
    const Batch inputs = ModelInputs(context_.config, model).of(pre_(examples));
    const at::Tensor original = post_(inputs[key_]);
    const at::Tensor made = model.reconstruct(inputs);
    if (!made.defined() || made.sizes() != inputs[key_].sizes()) {
      throw Error(fmt::format("the model's function reconstruct made {} of {}",
                              made.defined() ? describe_tensor(made) : "an undefined tensor",
                              describe_tensor(inputs[key_])));
    }
    return {original, post_(made)};
  }

 private:
  const Context& context_;
  std::string split_;
  std::string key_;
  int64_t count_;
  Preprocessor pre_;
  Postprocessor post_;
};

/// Shows images beside their reconstructions.
class ImageToImage : public ModelSampler {
 public:
  ImageToImage(const Config& params, const Context& context)
      : reconstructions_(params, context, "image") {}

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
  VideoToVideo(const Config& params, const Context& context)
      : reconstructions_(params, context, "video"),
        frames_per_second_(params.get("frames_per_second", 8.0)) {}

  Logs sample(LossModel& model) override {
    const auto [original, made] = reconstructions_.make(model);
    const at::Tensor pairs = at::cat({original, made.to(original.scalar_type())}, -1);
    return {.videos = {{"reconstructions", {pairs, frames_per_second_}}}};
  }

 private:
  Reconstructions reconstructions_;
  double frames_per_second_;
};

STEPOP_REGISTER_MODEL_SAMPLER(
    NoiseToImage, {"New images from noise, a row for each class.",
                   {{"classes", "0", "how many there are; 0: the model has no classes"},
                    {"count", "8", "images of each class"},
                    {"key", "class", "the name under which the model takes classes"},
                    {"seed", "1", "of the noise, which is the same in each log"},
                    {"postprocess", "none", "what turns samples into images in [-1, 1]"}}});
STEPOP_REGISTER_MODEL_SAMPLER(
    TextToImage, {"New images for prompts, which are their captions.",
                  {{"prompts", "", "a list of texts"},
                   {"key", "prompt", "the name under which the model takes them"},
                   {"seed", "1", "of the noise, which is the same in each log"},
                   {"preprocess", "none", "what makes tokens of them, such as bytes"},
                   {"postprocess", "none", "what turns samples into images in [-1, 1]"}}});
STEPOP_REGISTER_MODEL_SAMPLER(
    ImageToImage, {"Images beside what the model makes of them.",
                   {{"split", "validation", "of which examples are shown, always the same ones"},
                    {"key", "image", "the model's name for the images [B, C, H, W]"},
                    {"count", "4", "how many"},
                    {"preprocess", "none", "what is done with the batch before"},
                    {"postprocess", "none", "what turns both into images in [-1, 1]"}}});
STEPOP_REGISTER_MODEL_SAMPLER(
    VideoToVideo, {"Videos beside what the model makes of them, as an animated PNG.",
                   {{"split", "validation", "of which examples are shown, always the same ones"},
                    {"key", "video", "the model's name for the videos [B, T, C, H, W]"},
                    {"count", "4", "how many"},
                    {"frames_per_second", "8", "at which they are shown"},
                    {"preprocess", "none", "what is done with the batch before"},
                    {"postprocess", "none", "what turns both into videos in [-1, 1]"}}});

}  // namespace
}  // namespace stepop
