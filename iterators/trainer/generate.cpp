#include <fmt/format.h>

#include <memory>
#include <string>

#include "iterators/trainer/loss_model.h"
#include "iterators/trainer/model_inputs.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/iterator/eval_functor.h"

namespace stepop {
namespace {

/// Generates a sample for each example of a split, under the example's conditions.
class Generate : public EvalFunctor {
 public:
  struct Params {
    std::string network = "model";
    std::string output = "sample";

    void declare(Parameters& p) {
      p.add("network", network, "its name");
      p.add("output", output, "the key of what comes out");
    }
  };

  Generate(const Params& params, const Context& context)
      : EvalFunctor(context),
        model_(context.network<LossModel>(params.network)),
        inputs_(context.config, *model_),
        output_(params.output) {}

  EvalOutputs operator()(const Batch& batch) override {
    const Batch conditions = inputs_.of(batch);
    const at::Tensor samples = model_->sample(conditions);
    if (!samples.defined() || samples.dim() == 0 || samples.size(0) != batch.size()) {
      throw Error(fmt::format(
          "the model was asked for {} samples, its function sample returned {}", batch.size(),
          samples.defined() ? describe_tensor(samples) : "an undefined tensor"));
    }
    EvalOutputs made{.outputs = {{output_, samples}}, .labels = {}};
    // The conditions that are one number for each example.
    for (const auto& [key, tensor] : conditions.tensors()) {
      if (key == "index" || key == output_ || tensor.dim() != 1) continue;
      made.outputs.set(key, tensor);
    }
    for (const auto& [key, texts] : batch.texts()) {
      if (!made.outputs.contains(key)) made.outputs.set(key, texts);
    }
    return made;
  }

 private:
  std::shared_ptr<LossModel> model_;
  ModelInputs inputs_;
  std::string output_;
};

STEPOP_REGISTER_EVAL_FUNCTOR(
    Generate,
    {"A new example of a LossModel for each example of the split, under its conditions."});

}  // namespace
}  // namespace stepop
