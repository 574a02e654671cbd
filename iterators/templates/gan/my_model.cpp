// A GAN: two networks with an optimizer each, a dataset and an iterator of your own, in one file.
//   stepop -n first -b my_model.yaml -t
#include <stepop/stepop.h>

namespace {
// --- The data: pictures of a disc, [1, 16, 16] in [-1, 1]. Place and size come from the index, so
// example 7 is the same in each run.
class MyModelData : public stepop::Dataset {
 public:
  struct Params {
    int64_t size = 1000, first = 0;
    void declare(stepop::Parameters& p) {
      p.add("size", size, "examples", stepop::at_least(1));
      p.add("first", first, "the first seed: another one, other discs", stepop::at_least(0));
    }
  };
  explicit MyModelData(const Params& params) : params_(params) {}

  int64_t size() const override { return params_.size; }

  stepop::Example get(int64_t index, stepop::Random& /*random*/) const override {
    stepop::Random fixed(static_cast<uint64_t>(params_.first + index));
    const double x = 5 + 6 * fixed.uniform();
    const double y = 5 + 6 * fixed.uniform();
    const double radius = 2 + 2.5 * fixed.uniform();
    auto image = torch::empty({1, 16, 16});
    auto* values = image.data_ptr<float>();
    for (int i = 0; i < 256; ++i) {
      const double edge = radius - std::hypot(i % 16 - x, i / 16 - y);  // pixels
      values[i] = static_cast<float>(std::clamp(2 * edge, -1.0, 1.0));
    }
    return {.tensors = {{"image", image}}, .texts = {}};
  }

 private:
  Params params_;
};
STEPOP_REGISTER_DATASET(MyModelData, {"Discs."});

// --- The networks. Checkpoints use the names of their modules.
namespace nn = torch::nn;
constexpr int64_t kLatent = 16;
class MyModelGenerator : public stepop::Network {  // noise [B, 16] -> [B, 1, 16, 16]
 public:
  explicit MyModelGenerator(const stepop::Config& /*params*/)
      : layers_(nn::Linear(kLatent, 128), nn::ReLU(), nn::Linear(128, 256), nn::Tanh()) {
    register_module("layers", layers_);
  }
  torch::Tensor forward(const torch::Tensor& noise) override {
    return layers_->forward(noise).view({-1, 1, 16, 16});
  }

 private:
  nn::Sequential layers_;
};
STEPOP_REGISTER_MODEL(MyModelGenerator, {"Noise to pictures."});
class MyModelDiscriminator : public stepop::Network {  // [B, 1, 16, 16] -> logits [B, 1]
 public:
  explicit MyModelDiscriminator(const stepop::Config& /*params*/)
      : layers_(nn::Flatten(), nn::Linear(256, 128), nn::LeakyReLU(), nn::Linear(128, 1)) {
    register_module("layers", layers_);
  }
  torch::Tensor forward(const torch::Tensor& image) override { return layers_->forward(image); }

 private:
  nn::Sequential layers_;
};
STEPOP_REGISTER_MODEL(MyModelDiscriminator, {"Real or made."});
torch::Tensor loss_of(const torch::Tensor& logits, double target) {
  return torch::binary_cross_entropy_with_logits(logits, torch::full_like(logits, target));
}

// --- The iterator: two updates, each over the parameters of one network. `train_ops` in the config
// orders them. Closures capture by value: step_op has returned when they run.
class MyModel : public stepop::Iterator {
 public:
  explicit MyModel(const stepop::Context& context)
      : Iterator(context),
        generator_(context.network<MyModelGenerator>("generator")),
        discriminator_(context.network<MyModelDiscriminator>("discriminator")),
        update_generator_(context.update("generator_optimizer", {"generator"})),
        update_discriminator_(context.update("discriminator_optimizer", {"discriminator"})) {
    fixed_noise_ = torch::randn({16, kLatent}, context.device);
    context.track("fixed_noise", fixed_noise_);  // saved and restored: samples stay comparable
  }

  stepop::StepOps step_op(const stepop::Batch& batch) override {
    const auto real = batch["image"];
    const auto made = generator_->forward(torch::randn({batch.size(), kLatent}, real.device()));
    stepop::StepOps ops;
    // The scalars that a train op returns are averaged and logged: these losses exist only here.
    ops.train_ops["train_op/discriminator"] = [=, this] {
      const auto loss = loss_of(discriminator_->forward(real), 0.9) +
                        loss_of(discriminator_->forward(made.detach()), 0);
      update_discriminator_.step(loss);
      return stepop::Scalars{{"loss", loss.detach()}};
    };
    ops.train_ops["train_op/generator"] = [=, this] {
      const auto loss = loss_of(discriminator_->forward(made), 1);
      update_generator_.step(loss);
      return stepop::Scalars{{"loss", loss.detach()}};
    };
    ops.log_op = [this] {
      return stepop::Logs{.images = {{"sample", generator_->forward(fixed_noise_)}}};
    };
    ops.eval_op = [=, this] {
      const auto logit = discriminator_->forward(made).squeeze(1);  // [B]
      return stepop::EvalOutputs{.outputs = {{"sample", made}}, .labels = {{"logit", logit}}};
    };
    return ops;
  }

 private:
  std::shared_ptr<MyModelGenerator> generator_;
  std::shared_ptr<MyModelDiscriminator> discriminator_;
  stepop::Update& update_generator_;
  stepop::Update& update_discriminator_;
  torch::Tensor fixed_noise_;
};
STEPOP_REGISTER_ITERATOR(MyModel, {"Makes pictures of discs."});

}  // namespace
