// A regression: a network, a dataset and an iterator of your own, in one file.
//   stepop -n first -b my_model.yaml -t
#include <stepop/stepop.h>

namespace {

// --- The data: y = sin(3 x1) + x2^2, with noise. Every number comes from the index, so example 7
// is the same in each run; `random` is for augmentation, and is the same after a resume.
class MyModelData : public stepop::Dataset {
 public:
  struct Params {
    int64_t size = 1000, first = 0;
    double noise = 0.1;
    void declare(stepop::Parameters& p) {
      p.add("size", size, "examples", stepop::at_least(1));
      p.add("first", first, "the first seed: another one, other points", stepop::at_least(0));
      p.add("noise", noise, "its standard deviation", stepop::at_least(0));
    }
  };
  explicit MyModelData(const Params& params) : params_(params) {}

  int64_t size() const override { return params_.size; }

  stepop::Example get(int64_t index, stepop::Random& /*random*/) const override {
    stepop::Random fixed(static_cast<uint64_t>(params_.first + index));
    const double x1 = 2 * fixed.uniform() - 1;
    const double x2 = 2 * fixed.uniform() - 1;
    const double y = std::sin(3 * x1) + x2 * x2 + params_.noise * fixed.normal();
    return {.tensors = {{"x", torch::tensor({x1, x2}, torch::kFloat)},
                        {"y", torch::tensor({y}, torch::kFloat)}},
            .texts = {}};
  }

 private:
  Params params_;
};
STEPOP_REGISTER_DATASET(MyModelData, {"A function of two numbers, with noise."});

// --- The network: [B, 2] -> [B, 1]. Checkpoints use the names of its modules.
class MyModelNetwork : public stepop::Network {
 public:
  struct Params {
    int64_t width = 64;
    void declare(stepop::Parameters& p) {
      p.add("width", width, "of the hidden layers", stepop::at_least(1));
    }
  };
  explicit MyModelNetwork(const Params& params) {
    const int64_t width = params.width;
    layers_ = register_module(
        "layers", torch::nn::Sequential(torch::nn::Linear(2, width), torch::nn::SiLU(),
                                        torch::nn::Linear(width, width), torch::nn::SiLU(),
                                        torch::nn::Linear(width, 1)));
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
  explicit MyModel(const stepop::Context& context)
      : Iterator(context), model_(context.network<MyModelNetwork>()), update_(context.update()) {}

  stepop::StepOps step_op(const stepop::Batch& batch) override {
    const auto y = batch["y"];
    const auto prediction = model_->forward(batch["x"]);
    const auto loss = (prediction - y).square().squeeze(1);  // [B]
    return {
        .train_op = [=, this] { update_.step(loss.mean()); },
        .log_op =
            [=] {
              return stepop::Logs{.scalars = {{"mse", loss.mean()}}};
            },
        .eval_op =
            [=] {
              return stepop::EvalOutputs{.outputs = {{"prediction", prediction}, {"y", y}},
                                         .labels = {{"mse", loss}}};
            },
    };
  }

 private:
  std::shared_ptr<MyModelNetwork> model_;
  stepop::Update& update_;
};
STEPOP_REGISTER_ITERATOR(MyModel, {"Fits a function."});

}  // namespace
