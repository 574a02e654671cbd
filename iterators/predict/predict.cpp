#include "runtime/iterator/eval_functor.h"
#include "runtime/networks/network.h"

namespace stepop {

/// What a network makes of each example, for data without labels as well.
class Predict : public EvalFunctor {
 public:
  Predict(const Config& params, const Context& context)
      : EvalFunctor(context),
        model_(context.network<Network>()),
        input_(params.get("input", "image")),
        output_(params.get("output", "prediction")) {}

  EvalOutputs operator()(const Batch& batch) override {
    return {.outputs = {{output_, model_->forward(batch[input_])}}, .labels = {}};
  }

 private:
  std::shared_ptr<Network> model_;
  std::string input_;
  std::string output_;
};

STEPOP_REGISTER_EVAL_FUNCTOR(Predict,
                             {"The network's output for every example.",
                              {{"input", "image", "the batch's key that goes into the network"},
                               {"output", "prediction", "the key of what comes out"}}});

}  // namespace stepop
