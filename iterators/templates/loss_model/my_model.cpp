// A model that computes its own loss, and a dataset: the iterator `Trainer` does the rest.
//   stepop -n first -b my_model.yaml -t
#include <stepop/stepop.h>

#include <stepop/loss_model.h>

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

// --- The model. It takes `image` and `noisy` from each batch: another or a further name in a batch
// is an error at the start. Checkpoints use the names of its modules.
class MyModel : public stepop::LossModel {
 public:
  struct Params {
    int64_t width = 16;
    void declare(stepop::Parameters& p) {
      p.add("width", width, "channels after the first layer", stepop::at_least(1));
    }
  };
  explicit MyModel(const Params& params) : LossModel({"image", "noisy"}) {
    namespace nn = torch::nn;
    const int64_t width = params.width;
    const auto down = [](int64_t in, int64_t out) {
      return nn::Conv2d(nn::Conv2dOptions(in, out, 4).stride(2).padding(1));
    };
    const auto up = [](int64_t in, int64_t out) {
      return nn::ConvTranspose2d(nn::ConvTranspose2dOptions(in, out, 4).stride(2).padding(1));
    };
    layers_ = register_module(
        "layers", nn::Sequential(down(1, width), nn::ReLU(), down(width, 2 * width), nn::ReLU(),
                                 up(2 * width, width), nn::ReLU(), up(width, 1)));
  }

  // Computes the loss of a batch: [B], a number for each example, or their mean []. The other
  // values are logged, and written by evaluations.
  stepop::LossOutput forward(const stepop::Batch& batch) override {
    const auto error = layers_->forward(batch["noisy"]) - batch["image"];      // [B, 1, 32, 32]
    const auto loss = error.square().mean(at::IntArrayRef{1, 2, 3});           // [B]
    return {loss, {{"largest", error.abs().amax(at::IntArrayRef{1, 2, 3})}}};  // [B]
  }

  // For the sampler ImageToImage: the model's output for the images of a batch.
  torch::Tensor reconstruct(const stepop::Batch& batch) override {
    return layers_->forward(batch["noisy"]);
  }

 private:
  torch::nn::Sequential layers_ = nullptr;
};
STEPOP_REGISTER_MODEL(MyModel, {"Takes noise away, and knows how well."});

}  // namespace
