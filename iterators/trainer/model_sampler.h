#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
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

/// Declare the processors `preprocess` and `postprocess`; without a key, nothing changes.
void add_preprocessor(Parameters& p, Preprocessor& process, std::string_view about);
void add_postprocessor(Parameters& p, Postprocessor& process, std::string_view about);

/// A processor from its `Params`, or from its part of the config.
template <class Processor, class Params>
std::function<Processor(const Config&)> processor_of(Processor (*make)(const Params&)) {
  if constexpr (std::is_same_v<Params, Config>) {
    return make;
  } else {
    return [make](const Config& config) { return make(read_parameters<Params>(config)); };
  }
}
template <class Processor, class Params>
About about_processor(Processor (* /*make*/)(const Params&), About given = {}) {
  if constexpr (!std::is_same_v<Params, Config>) given.parameters = parameters_of<Params>();
  return given;
}

/// Images [N, C, H, W] in [-1, 1] with a caption below each, in rows of `columns`: one image
/// [1, 3, H', W']. Long captions take several lines. Captions may be fewer than images. Images
/// whose longer side is below `least_side` pixels are enlarged.
at::Tensor captioned_rows(const at::Tensor& images, const std::vector<std::string>& captions,
                          int64_t columns, int64_t least_side);

}  // namespace stepop

/// Registers a ModelSampler with a constructor from its `Params`, its config (`const
/// stepop::Config&`), or both, and `const stepop::Context&`, which outlives it.
#define STEPOP_REGISTER_MODEL_SAMPLER(Class, ...)                                       \
  STEPOP_REGISTER(                                                                      \
      ::stepop::model_samplers(), #Class,                                               \
      [](const ::stepop::Config& params,                                                \
         const ::stepop::Context& context) -> std::unique_ptr<::stepop::ModelSampler> { \
        return ::stepop::make_component<Class>(params, context);                        \
      },                                                                                \
      ::stepop::about_class<Class>(__VA_ARGS__))

/// Registers a function `Preprocessor make(const Params& params)`, or of `const stepop::Config&`.
#define STEPOP_REGISTER_PREPROCESSOR(name, make, ...)                             \
  STEPOP_REGISTER(::stepop::preprocessors(), #name, ::stepop::processor_of(make), \
                  ::stepop::about_processor(make __VA_OPT__(, ) __VA_ARGS__))

/// Registers a function `Postprocessor make(const Params& params)`, or of `const stepop::Config&`.
#define STEPOP_REGISTER_POSTPROCESSOR(name, make, ...)                             \
  STEPOP_REGISTER(::stepop::postprocessors(), #name, ::stepop::processor_of(make), \
                  ::stepop::about_processor(make __VA_OPT__(, ) __VA_ARGS__))
