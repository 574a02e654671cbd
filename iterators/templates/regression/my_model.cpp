// A regression: a network, a dataset and an iterator of your own, in one file.
//   stepop -n first -b my_model.yaml -t
#include <stepop/stepop.h>

namespace {

// --- The data: y = sin(3 x1) + x2^2, with noise. Every number comes from the index, so example 7
// is the same in each run; `random` is for augmentation, and is the same after a resume.
class MyModelData : public stepop::Dataset {
 public:
  explicit MyModelData(const stepop::Config& params)
      : size_(params.get_at_least("size", 1, 1000)),
        first_(params.get_at_least("first", 0, 0)),
        noise_(params.get("noise", 0.1)) {}

  int64_t size() const override { return size_; }

  stepop::Example get(int64_t index, stepop::Random& /*random*/) const override {
    stepop::Random fixed(static_cast<uint64_t>(first_ + index));
    const double x1 = 2 * fixed.uniform() - 1;
    const double x2 = 2 * fixed.uniform() - 1;
    const double y = std::sin(3 * x1) + x2 * x2 + noise_ * fixed.normal();
    return {.tensors = {{"x", torch::tensor({x1, x2}, torch::kFloat)},
                        {"y", torch::tensor({y}, torch::kFloat)}},
            .texts = {}};
  }

 private:
  int64_t size_;
  int64_t first_;
  double noise_;
};
STEPOP_REGISTER_DATASET(MyModelData, {"A function of two numbers, with noise.",
                                      {{"size", "1000", "examples"},
                                       {"first", "0", "the first seed: another one, other points"},
                                       {"noise", "0.1", "its standard deviation"}}});

// --- The network: [B, 2] -> [B, 1]. Checkpoints use the names of its modules.
class MyModelNetwork : public stepop::Network {
 public:
  explicit MyModelNetwork(const stepop::Config& params) {
    const int64_t width = params.get_at_least("width", 1, 64);
    layers_ = register_module(
        "layers", torch::nn::Sequential(torch::nn::Linear(2, width), torch::nn::SiLU(),
                                        torch::nn::Linear(width, width), torch::nn::SiLU(),
                                        torch::nn::Linear(width, 1)));
  }

  torch::Tensor forward(const torch::Tensor& x) override { return layers_->forward(x); }

 private:
  torch::nn::Sequential layers_ = nullptr;
};
STEPOP_REGISTER_MODEL(MyModelNetwork,
                      {"Three linear layers.", {{"width", "64", "of the hidden layers"}}});

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
