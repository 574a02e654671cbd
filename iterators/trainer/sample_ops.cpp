#include "iterators/trainer/sample_ops.h"

#include <fmt/format.h>

#include <string>

#include "runtime/core/measure/profile.h"
#include "runtime/train/networks/evaluation_mode.h"
#include "runtime/train/networks/networks.h"

namespace stepop {
SampleOps::SampleOps(const Context& context, LossModel& model) : context_(context), model_(model) {
  const Config& config = context.config;
  if (!config.has("sampling")) return;
  if (!config.peek("sampling")->is_map()) {
    throw config.error("sampling", fmt::format("expected a map of samplers such as {{digits: "
                                               "{{class: NoiseToImage, when: 500}}}}, found {}",
                                               config.peek("sampling")->describe()));
  }
  for (const auto& name : config.at("sampling").keys()) {
    const std::string path = "sampling/" + name;
    if (!config.has(path)) continue;  // null disables a sampler
    if (!config.peek(path)->is_map()) {
      throw config.error(path, fmt::format("expected a map such as {{class: NoiseToImage, when: "
                                           "500}}, found {}",
                                           config.peek(path)->describe()));
    }
    samplers_.set(name, model_samplers().build(config, path, context));
  }
}

void SampleOps::add_to(StepOps& ops) const {
  for (const auto& [name, sampler] : samplers_) {
    ops.log_ops.set("sample_op/" + name, [this, sampler] { return sample(*sampler); });
  }
}

OrderedMap<std::string> SampleOps::log_ops() const {
  OrderedMap<std::string> ops;
  for (const auto& [name, sampler] : samplers_) {
    ops.set("sample_op/" + name, "sampling/" + name + "/when");
  }
  return ops;
}

Logs SampleOps::sample(ModelSampler& sampler) const {
  const Span span(context_.profile.get(), "sampling");
  const AveragesGuard averages = context_.networks.averaged_weights();
  const EvaluationMode mode(model_);
  model_.set_global_step(context_.position.global_step);
  return sampler.sample(model_);
}

}  // namespace stepop
