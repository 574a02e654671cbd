// A table with missing values: numbers and towns of houses, from which the model predicts the price
// and the rent. my_model.csv has the table (made up); my_model.yaml describes its columns.
//   stepop -n first -b my_model.yaml -t
#include <stepop/stepop.h>

namespace {

// --- The network: [B, inputs] -> [B, outputs]. Checkpoints use the names of its modules.
class MyModelNetwork : public stepop::Network {
 public:
  struct Params {
    int64_t inputs = 0, outputs = 0, width = 64;
    void declare(stepop::Parameters& p) {
      p.require("inputs", inputs, "numbers of an example", stepop::at_least(1));
      p.require("outputs", outputs, "numbers that it predicts", stepop::at_least(1));
      p.add("width", width, "of the hidden layers", stepop::at_least(1));
    }
  };
  explicit MyModelNetwork(const Params& params) {
    const auto& [inputs, outputs, width] = params;
    layers_ = register_module(
        "layers", torch::nn::Sequential(torch::nn::Linear(inputs, width), torch::nn::SiLU(),
                                        torch::nn::Linear(width, width), torch::nn::SiLU(),
                                        torch::nn::Linear(width, outputs)));
  }

  torch::Tensor forward(const torch::Tensor& x) override { return layers_->forward(x); }

 private:
  torch::nn::Sequential layers_ = nullptr;
};
STEPOP_REGISTER_MODEL(MyModelNetwork, {"Three linear layers."});

// --- The iterator. step_op runs the forward pass and returns closures; stepop decides which of
// them run. They capture by value ([=], and `this`): step_op has returned by then.
class MyModel : public stepop::Iterator {
 public:
  struct Params {
    int64_t towns = 0;
    void declare(stepop::Parameters& p) {
      p.require("towns", towns, "how many towns there are", stepop::at_least(1));
    }
  };
  MyModel(const Params& params, const stepop::Context& context)
      : Iterator(context),
        model_(context.network<MyModelNetwork>()),
        update_(context.update()),
        towns_(params.towns),
        y_(context.config, "train", "y") {}

  stepop::StepOps step_op(const stepop::Batch& batch) override {
    // Towns are numbers; one-hot inputs give them no order.
    const auto town = torch::one_hot(batch["town"], towns_).to(torch::kFloat);
    const auto output = model_->forward(torch::cat({batch["x"], town}, 1));  // standardized
    const auto prediction = y_.undo(output);  // in the units of the table
    if (!batch.contains("y")) {               // new rows: stepop predict
      return {.eval_op = [=] {
        return stepop::EvalOutputs{.outputs = {{"prediction", prediction}}, .labels = {}};
      }};
    }
    const auto y = batch["y"];
    const auto loss = (output - y).square().mean(1);  // [B]
    return {
        .train_op = [=, this] { update_.step(loss.mean()); },
        .log_op =
            [=] {
              return stepop::Logs{.scalars = {{"mse", loss.mean()}}};
            },
        .eval_op =
            [=, this] {
              return stepop::EvalOutputs{.outputs = {{"prediction", prediction}, {"y", y_.undo(y)}},
                                         .labels = {{"mse", loss}}};
            },
    };
  }

 private:
  std::shared_ptr<MyModelNetwork> model_;
  stepop::Update& update_;
  int64_t towns_;
  stepop::Standardization y_;
};
STEPOP_REGISTER_ITERATOR(MyModel, {"Predicts several numbers of a row."});

}  // namespace
