#include <fmt/format.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/iterator/eval_functor.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace {

constexpr const char* kUsualInput = "image";
/// The advice in messages when the network alone is not enough.
constexpr const char* kInstead =
    "\n--eval_functor null runs the eval_op of the iterator instead of the functor Predict";

/// Writes a network's output for each example, also for data without labels, and the examples'
/// texts, such as file names.
class Predict : public EvalFunctor {
 public:
  struct Params {
    std::string network = "model";
    std::optional<std::string> input;
    std::string output = "prediction";

    void declare(Parameters& p) {
      p.add("network", network, "its name");
      p.add("input", input,
            "the batch's key that goes into the network; null: image, or the only tensor");
      p.add("output", output, "the key of what comes out");
    }
  };

  Predict(const Params& params, const Context& context)
      : EvalFunctor(context),
        model_(network_of(context, params.network)),
        input_(params.input.value_or("")),
        output_(params.output) {}

  EvalOutputs operator()(const Batch& batch) override {
    EvalOutputs made{.outputs = {{output_, called_with(batch, input_of(batch))}}, .labels = {}};
    for (const auto& [key, texts] : batch.texts()) {
      if (!made.outputs.contains(key)) made.outputs.set(key, texts);
    }
    return made;
  }

 private:
  static std::shared_ptr<Network> network_of(const Context& context, const std::string& name) {
    try {
      return context.network<Network>(name);
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      throw Error(
          fmt::format("{}\n--eval_functor '{{class: Predict, network: NAME}}' takes another "
                      "network of the run, with input: KEY where its images have another "
                      "key{}",
                      error.what(), kInstead),
          error.exit_code());
    }
  }

  at::Tensor called_with(const Batch& batch, const std::string& key) const {
    const at::Tensor input = batch[key];
    try {
      return model_->forward(input);
    } catch (const std::exception& error) {
      throw Error(
          fmt::format("{}\n\"{}\" goes into the network as it is, {}: what the iterator "
                      "does to it before belongs into the network{}",
                      error_text(error), key, describe_tensor(input), kInstead));
    }
  }

  /// The key of the input: `image`, or else the only tensor.
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
  std::string input_;  ///< Empty: input_of finds the key.
  std::string output_;
};

STEPOP_REGISTER_EVAL_FUNCTOR(Predict,
                             {"The network's output for every example, and the example's texts."});

}  // namespace
}  // namespace stepop
