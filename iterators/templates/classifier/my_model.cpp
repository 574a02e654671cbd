// A classifier: a network, a dataset and an iterator of your own, in one file.
//   stepop -n first -b my_model.yaml -t
#include <stepop/cross_entropy.h>
#include <stepop/metrics.h>
#include <stepop/stepop.h>

namespace {

// --- The data: points on arms of a spiral, one arm a class. Every number comes from the index, so
// example 7 is the same in each run; `random` is for augmentation, and is the same after a resume.
class MyModelData : public stepop::Dataset {
 public:
  struct Params {
    int64_t size = 1000, classes = 3, first = 0;
    void declare(stepop::Parameters& p) {
      p.add("size", size, "examples", stepop::at_least(1));
      p.add("classes", classes, "arms", stepop::at_least(2));
      p.add("first", first, "the first seed: another one, other points", stepop::at_least(0));
    }
  };
  explicit MyModelData(const Params& params) : params_(params) {}

  int64_t size() const override { return params_.size; }

  stepop::Example get(int64_t index, stepop::Random& /*random*/) const override {
    stepop::Random fixed(static_cast<uint64_t>(params_.first + index));
    const int64_t arm = index % params_.classes;
    const double radius = fixed.uniform();
    const double angle =
        4 * radius + 6.283 * static_cast<double>(arm) / static_cast<double>(params_.classes);
    const double x = radius * std::cos(angle) + 0.02 * fixed.normal();
    const double y = radius * std::sin(angle) + 0.02 * fixed.normal();
    return {
        .tensors = {{"point", torch::tensor({x, y}, torch::kFloat)}, {"class", torch::tensor(arm)}},
        .texts = {}};
  }

 private:
  Params params_;
};
STEPOP_REGISTER_DATASET(MyModelData, {"Points on arms of a spiral."});

// --- The network: [B, inputs] -> [B, classes]. Checkpoints use the names of its modules.
class MyModelNetwork : public stepop::Network {
 public:
  struct Params {
    int64_t inputs = 2, width = 64, classes = 3;
    void declare(stepop::Parameters& p) {
      p.add("inputs", inputs, "numbers of an example", stepop::at_least(1));
      p.add("width", width, "of the hidden layers", stepop::at_least(1));
      p.add("classes", classes, "number of logits", stepop::at_least(2));
    }
  };
  explicit MyModelNetwork(const Params& params) {
    const auto& [inputs, width, classes] = params;
    layers_ = register_module(
        "layers", torch::nn::Sequential(torch::nn::Linear(inputs, width), torch::nn::ReLU(),
                                        torch::nn::Linear(width, width), torch::nn::ReLU(),
                                        torch::nn::Linear(width, classes)));
  }

  torch::Tensor forward(const torch::Tensor& point) override { return layers_->forward(point); }

 private:
  torch::nn::Sequential layers_ = nullptr;
};
STEPOP_REGISTER_MODEL(MyModelNetwork, {"Three linear layers."});

// --- The iterator. step_op runs the forward pass and returns closures; stepop decides which of
// them run. They capture by value ([=], and `this`): step_op has returned by then.
class MyModel : public stepop::Iterator {
 public:
  explicit MyModel(const stepop::Context& context)
      : Iterator(context),
        model_(context.network<MyModelNetwork>()),
        update_(context.update()),
        metrics_(context) {}

  stepop::StepOps step_op(const stepop::Batch& batch) override {
    const auto target = batch["class"];
    const auto logits = model_->forward(batch["point"]);
    const auto loss = stepop::cross_entropy(logits, target);  // a mean that knows its weight
    return {
        // Runs in each step of the train split: backward, clipping, the optimizer.
        .train_op =
            [=, this] {
              update_.step(loss);
              metrics_.update(logits, target);
            },
        // Runs when a log is due, for the train and the validation split.
        .log_op =
            [=, this] {
              stepop::Logs logs{.scalars = {{"loss", loss}}};
              metrics_.add_to(logs, logits, target);
              return logs;
            },
        // Runs after each epoch over the whole validation split; writes outputs.h5.
        .eval_op =
            [=] {
              const auto losses = stepop::cross_entropy_of_examples(logits, target);  // [B]
              return stepop::EvalOutputs{.outputs = {{"logits", logits}, {"class", target}},
                                         .labels = {{"loss", losses}}};
            },
    };
  }

 private:
  std::shared_ptr<MyModelNetwork> model_;
  stepop::Update& update_;
  stepop::RunningMetrics metrics_;  // in train, of all steps since the last log
};
STEPOP_REGISTER_ITERATOR(MyModel, {"Classifies points.",
                                   {{"metrics/<name>", "none", "{class: F1}: what is logged"}}});

}  // namespace
