// A denoising autoencoder: a network, a dataset and an iterator of your own, in one file.
//   stepop -n first -b my_model.yaml -t
#include <stepop/stepop.h>

namespace {

// --- The data: pictures of a disc, [1, 32, 32] in [-1, 1]. Place and size come from the index, so
// example 7 is the same in each run; the noise comes from `random`, which differs in each epoch,
// and is the same after a resume.
class MyModelData : public stepop::Dataset {
 public:
  struct Params {
    int64_t size = 1000, first = 0;
    double noise = 0.5;
    void declare(stepop::Parameters& p) {
      p.add("size", size, "examples", stepop::at_least(1));
      p.add("first", first, "the first seed: another one, other discs", stepop::at_least(0));
      p.add("noise", noise, "its standard deviation", stepop::at_least(0));
    }
  };
  explicit MyModelData(const Params& params) : params_(params) {}

  int64_t size() const override { return params_.size; }

  stepop::Example get(int64_t index, stepop::Random& random) const override {
    stepop::Random fixed(static_cast<uint64_t>(params_.first + index));
    const double x = 8 + 16 * fixed.uniform();
    const double y = 8 + 16 * fixed.uniform();
    const double radius = 3 + 5 * fixed.uniform();
    auto image = torch::empty({1, 32, 32});
    auto noisy = torch::empty({1, 32, 32});
    auto* clean = image.data_ptr<float>();
    auto* values = noisy.data_ptr<float>();
    for (int row = 0; row < 32; ++row) {
      for (int column = 0; column < 32; ++column) {
        const double edge = radius - std::hypot(column - x, row - y);  // pixels
        *clean = static_cast<float>(std::clamp(2 * edge, -1.0, 1.0));
        *values++ = *clean++ + static_cast<float>(params_.noise * random.normal());
      }
    }
    return {.tensors = {{"image", image}, {"noisy", noisy}}, .texts = {}};
  }

 private:
  Params params_;
};
STEPOP_REGISTER_DATASET(MyModelData, {"Discs under noise."});

// --- The network: [B, 1, 32, 32] -> the same. Checkpoints use the names of its modules.
class MyModelNetwork : public stepop::Network {
 public:
  struct Params {
    int64_t width = 16;
    void declare(stepop::Parameters& p) {
      p.add("width", width, "channels after the first", stepop::at_least(1));
    }
  };
  explicit MyModelNetwork(const Params& params) {
    namespace nn = torch::nn;
    const int64_t width = params.width;
    const auto options = [](int64_t in, int64_t out) {
      return nn::Conv2dOptions(in, out, 4).stride(2).padding(1);
    };
    const auto back = [](int64_t in, int64_t out) {
      return nn::ConvTranspose2dOptions(in, out, 4).stride(2).padding(1);
    };
    encoder_ = register_module(
        "encoder", nn::Sequential(nn::Conv2d(options(1, width)), nn::ReLU(),          // 16
                                  nn::Conv2d(options(width, 2 * width)), nn::ReLU(),  // 8
                                  nn::Conv2d(options(2 * width, 4 * width))));        // 4
    decoder_ = register_module(
        "decoder", nn::Sequential(nn::ConvTranspose2d(back(4 * width, 2 * width)), nn::ReLU(),
                                  nn::ConvTranspose2d(back(2 * width, width)), nn::ReLU(),
                                  nn::ConvTranspose2d(back(width, 1))));
  }

  torch::Tensor forward(const torch::Tensor& image) override {
    return decoder_->forward(encoder_->forward(image));
  }

 private:
  torch::nn::Sequential encoder_ = nullptr;
  torch::nn::Sequential decoder_ = nullptr;
};
STEPOP_REGISTER_MODEL(MyModelNetwork, {"Three convolutions down, three up."});

// --- The iterator. step_op runs the forward pass and returns closures; stepop decides which of
// them run. They capture by value ([=], and `this`): step_op has returned by then.
class MyModel : public stepop::Iterator {
 public:
  explicit MyModel(const stepop::Context& context)
      : Iterator(context), model_(context.network<MyModelNetwork>()), update_(context.update()) {}

  stepop::StepOps step_op(const stepop::Batch& batch) override {
    const auto image = batch["image"];
    const auto noisy = batch["noisy"];
    const auto output = model_->forward(noisy);
    const auto loss = (output - image).square().mean(at::IntArrayRef{1, 2, 3});  // [B]
    return {
        .train_op = [=, this] { update_.step(loss.mean()); },
        .log_op =
            [=] {
              return stepop::Logs{.scalars = {{"mse", loss.mean()}},
                                  .images = {{"noisy", noisy}, {"output", output}}};
            },
        .eval_op =
            [=] {
              return stepop::EvalOutputs{.outputs = {{"output", output}, {"image", image}},
                                         .labels = {{"mse", loss}}};
            },
    };
  }

 private:
  std::shared_ptr<MyModelNetwork> model_;
  stepop::Update& update_;
};
STEPOP_REGISTER_ITERATOR(MyModel, {"Takes noise away."});

}  // namespace
