#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "iterators/trainer/loss_model.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/log/logs.h"
#include "runtime/train/iterator/context.h"

namespace stepop {

/// Logs samples of a model: `sampling: {digits: {class: NoiseToImage, when: 500}}`. The sampler is
/// called when it is due, with the model in evaluation mode and with averaged weights if it has
/// any, without gradients. The random numbers of the sampler and the model do not affect the
/// training.
class ModelSampler {
 public:
  virtual ~ModelSampler() = default;
  virtual Logs sample(LossModel& model) = 0;
};

using ModelSamplerRegistry =
    Registry<std::unique_ptr<ModelSampler>(const Config& params, const Context& context)>;
ModelSamplerRegistry& model_samplers();

/// Converts a sampler's batch into the model's inputs, such as prompts into tokens.
using Preprocessor = std::function<Batch(const Batch& batch)>;
using PreprocessorRegistry = Registry<Preprocessor(const Config& params)>;
PreprocessorRegistry& preprocessors();

/// Converts a model's output, [N, ...], into images or videos in [-1, 1].
using Postprocessor = std::function<at::Tensor(const at::Tensor& samples)>;
using PostprocessorRegistry = Registry<Postprocessor(const Config& params)>;
PostprocessorRegistry& postprocessors();

/// The processors at the keys `preprocess` and `postprocess`; without a key, nothing changes.
Preprocessor read_preprocessor(const Config& params);
Postprocessor read_postprocessor(const Config& params);

/// Images [N, C, H, W] in [-1, 1] with a caption below each, in rows of `columns`: one image
/// [1, 3, H', W']. Long captions take several lines. Captions may be fewer than images. Images
/// whose longer side is below `least_side` pixels are enlarged.
at::Tensor captioned_rows(const at::Tensor& images, const std::vector<std::string>& captions,
                          int64_t columns, int64_t least_side);

}  // namespace stepop

/// Registers a ModelSampler with a constructor `Class(const stepop::Config& params, const
/// stepop::Context& context)`; `params` is the sampler's config; `context` outlives it.
#define STEPOP_REGISTER_MODEL_SAMPLER(Class, ...)                                       \
  STEPOP_REGISTER(                                                                      \
      ::stepop::model_samplers(), #Class,                                               \
      [](const ::stepop::Config& params,                                                \
         const ::stepop::Context& context) -> std::unique_ptr<::stepop::ModelSampler> { \
        return ::stepop::make_component<Class>(params, context);                        \
      },                                                                                \
      ::stepop::about_class<Class>(__VA_ARGS__))

/// Registers a function `Preprocessor make(const stepop::Config& params)`.
#define STEPOP_REGISTER_PREPROCESSOR(name, make, ...) \
  STEPOP_REGISTER(::stepop::preprocessors(), #name, make, __VA_ARGS__)

/// Registers a function `Postprocessor make(const stepop::Config& params)`.
#define STEPOP_REGISTER_POSTPROCESSOR(name, make, ...) \
  STEPOP_REGISTER(::stepop::postprocessors(), #name, make, __VA_ARGS__)
