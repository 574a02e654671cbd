#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/iterator/eval_functor.h"
#include "runtime/networks/network.h"

namespace stepop {
namespace {

constexpr const char* kUsualInput = "image";

/// What a network makes of each example, for data without labels as well. The texts of the
/// examples, such as the names of their files, are written beside it.
class Predict : public EvalFunctor {
 public:
  Predict(const Config& params, const Context& context)
      : EvalFunctor(context),
        model_(context.network<Network>(params.get("network", "model"))),
        output_(params.get("output", "prediction")) {
    if (params.has("input")) input_ = params.get<std::string>("input");
  }

  EvalOutputs operator()(const Batch& batch) override {
    EvalOutputs made{.outputs = {{output_, model_->forward(batch[input_of(batch)])}}, .labels = {}};
    for (const auto& [key, texts] : batch.texts()) {
      if (!made.outputs.contains(key)) made.outputs.set(key, texts);
    }
    return made;
  }

 private:
  /// `image`, else the only tensor that there is.
  std::string input_of(const Batch& batch) const {
    if (!input_.empty()) return input_;
    if (batch.contains(kUsualInput)) return kUsualInput;
    std::vector<std::string> keys;
    for (const auto& [key, tensor] : batch.tensors()) {
      if (key != "index") keys.push_back(key);
    }
    if (keys.size() == 1) return keys.front();
    throw Error(
        fmt::format("the batch has {}: which of them goes into the network? "
                    "--eval_functor/input KEY",
                    keys.empty() ? "no tensors" : list_text(keys)));
  }

  std::shared_ptr<Network> model_;
  std::string input_;  ///< Empty: to be found.
  std::string output_;
};

STEPOP_REGISTER_EVAL_FUNCTOR(
    Predict, {"The network's output for every example, and the example's texts.",
              {{"network", "model", "its name"},
               {"input", "null",
                "the batch's key that goes into the network; null: image, or the only tensor"},
               {"output", "prediction", "the key of what comes out"}}});

}  // namespace
}  // namespace stepop
