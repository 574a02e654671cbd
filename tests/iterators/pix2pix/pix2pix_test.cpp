#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "eval_out/read/eval_reader.h"
#include "iterators/losses/perceptual.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/dataset.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/when/training_length.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace pix2pix_test {

TEST_CASE("the rate of base.yaml is NectarGAN's in every step") {
  const Config config(read_yaml_file(STEPOP_SOURCE_DIR "/configs/pix2pix/base.yaml"));
  constexpr int64_t kBatches = 400;  // of an epoch
  const auto epochs = config.get<int64_t>("num_epochs");
  const LengthScope length([&] { return TrainingLength{kBatches, epochs * kBatches}; });
  const Scheduled lr(config.at("generator_optimizer"), "lr");
  const at::Tensor rates =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/pix2pix/rates.safetensors")
          .tensors.at("default");
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    CAPTURE(epoch);
    for (const int64_t batch : {int64_t{0}, int64_t{1}, kBatches - 1}) {
      const double expected = rates[epoch].item<double>();
      CHECK(lr.at(epoch * kBatches + batch) == doctest::Approx(expected).epsilon(1e-12));
    }
  }
  const std::string page = read_bytes(STEPOP_SOURCE_DIR "/iterators/NECTARGAN.md");
  CHECK(page.find("start: 99e, steps: end, per: epoch") != std::string::npos);
}

const std::string kStored = STEPOP_SOURCE_DIR "/tests/data/pix2pix/training.safetensors";
const std::string kThinVgg = STEPOP_SOURCE_DIR "/tests/data/vgg19/thin.safetensors";

/// The pairs of torch_training.py, in its order.
class StoredPairs : public Dataset {
 public:
  explicit StoredPairs(const Config& /*params*/) {
    const State stored = load_safetensors(kStored).tensors;
    input_ = stored.at("input").flatten(0, 1);
    target_ = stored.at("target").flatten(0, 1);
  }
  int64_t size() const override { return input_.size(0); }
  Example get(int64_t index, Random& /*random*/) const override {
    return {.tensors = {{"input", input_[index]}, {"target", target_[index]}}, .texts = {}};
  }

 private:
  at::Tensor input_, target_;
};
STEPOP_REGISTER_DATASET(StoredPairs, {"For tests.", {}});

const char* const kAdam = "{class: Adam, lr: 1.0e-3, betas: [0.5, 0.999]}";

/// A small training on them, and `more` of a config.
std::string tiny(const std::string& more, int64_t steps = 3, const std::string& optimizer = kAdam) {
  return fmt::format(R"(iterator: Pix2Pix
networks:
  generator: {{class: UnetGenerator, features: 2, n_downs: 1, use_dropout_layers: 0}}
  discriminator: {{class: PatchGan, base_channels: 2, n_layers: 2, max_channels: 4}}
datasets: {{train: StoredPairs, validation: StoredPairs}}
samplers: {{train: sequential}}
train_ops: [train/train_op/discriminator, train/train_op/generator]
batch_size: 2
test_batch_size: 4
num_threads: 1
device: cpu
log_freq: 1
num_steps: {}
generator_optimizer: {}
{})",
                     steps, optimizer, more);
}

const std::string kFromStored = fmt::format(R"(
init_from:
- {{path: {0}, prefix: before.generator., network: generator}}
- {{path: {0}, prefix: before.discriminator., network: discriminator}}
)",
                                            kStored);

double logged(const nlohmann::json& line, const std::string& name) {
  return line.at(name).get<double>();
}

/// The lines of metrics.jsonl that have such a number: those of logs, or of evaluations.
std::vector<nlohmann::json> lines_with(const TestRun& run, const std::string& name) {
  std::vector<nlohmann::json> lines;
  for (const auto& line : run.metrics()) {
    if (line.contains(name)) lines.push_back(line);
  }
  return lines;
}

const std::string kLossOfLogs = "train/train_op/generator/G_L1";

TEST_CASE("three steps with all losses end with the weights of PyTorch, and log its losses") {
  TestRun run(tiny(kFromStored + fmt::format(R"(
discriminator_optimizer: {{class: Adam, lr: 2.0e-3, betas: [0.5, 0.999]}}
label_smoothing: 0.1
loss_spec: extended+vgg
losses: {{G_L2: {{weight: 5}}, G_LAP: {{weight: 2}}, G_VGG: {{vgg19: {}}}}}
)",
                                             kThinVgg)));
  const State stored = load_safetensors(kStored).tensors;
  run.session.init_weights();
  run.train();
  const auto lines = lines_with(run, kLossOfLogs);
  for (int step = 0; step < 3; ++step) {
    const auto& line = lines.at(static_cast<size_t>(step));
    const auto check = [&](const std::string& op, const std::string& loss) {
      CAPTURE(step);
      CAPTURE(loss);
      const double expected = stored.at(fmt::format("loss.{}.{}", step, loss)).item<double>();
      CHECK(logged(line, "train/train_op/" + op + "/" + loss) ==
            doctest::Approx(expected).epsilon(1e-5));
    };
    for (const char* loss : {"D_real", "D_fake"}) check("discriminator", loss);
    for (const char* loss : {"G_GAN", "G_L1", "G_L2", "G_SOBEL", "G_LAP", "G_VGG"}) {
      check("generator", loss);
    }
  }
  const State after = run.checkpoint(3);
  int compared = 0;
  for (const auto& [name, tensor] : stored) {
    if (!name.starts_with("after.")) continue;
    CAPTURE(name);
    ++compared;
    // Adam moves by the sign of a gradient where it is nothing but rounding.
    CHECK(at::allclose(after.at(name.substr(6)), tensor, 1e-4, 2e-5));
  }
  CHECK(compared == 14);
}

TEST_CASE("without an optimizer of its own the discriminator is trained as the generator is") {
  TestRun run(tiny(""));
  run.train();
  TestRun spelled(tiny(fmt::format("discriminator_optimizer: {}\n", kAdam)));
  spelled.train();
  CHECK(differences(run.checkpoint(3), spelled.checkpoint(3)) == "");
}

TEST_CASE("rates and weights are constant and then fall, and both are logged as they are") {
  TestRun run(
      tiny("losses: {G_L1: {weight: {class: linear, from: 100, to: 20, start: 1, steps: 4}}}\n", 8,
           "{class: Adam, lr: {class: linear, from: 4.0e-3, to: 0, start: 2, steps: 4}}"));
  run.train();
  const auto lines = lines_with(run, kLossOfLogs);
  const std::vector<double> rates = {4e-3, 4e-3, 4e-3, 3e-3, 2e-3, 1e-3, 0, 0};
  const std::vector<double> weights = {100, 100, 80, 60, 40, 20, 20, 20};
  for (size_t i = 0; i < rates.size(); ++i) {
    CAPTURE(i);
    CHECK(logged(lines.at(i), "runtime/generator_optimizer/lr") == doctest::Approx(rates[i]));
    CHECK(logged(lines.at(i), "runtime/discriminator_optimizer/lr") == doctest::Approx(rates[i]));
    CHECK(logged(lines.at(i), "train/train_op/generator/weight/G_L1") ==
          doctest::Approx(weights[i]));
  }
}

TEST_CASE("a loss of the weight 0 is logged and changes nothing") {
  TestRun without(tiny(""));
  without.train();
  TestRun watched(tiny("losses: {mine: {loss: l2, weight: 0, tags: [G]}}\n"));
  watched.train();
  CHECK(differences(without.checkpoint(3), watched.checkpoint(3)).starts_with("losses.mine"));
  CHECK(lines_with(watched, "train/train_op/generator/mine").size() == 3);
}

TEST_CASE("an evaluation has each pair's images, losses, PSNR and SSIM, and a picture of pairs") {
  TestRun run(tiny("losses: {mine: {loss: l2, weight: 3, tags: [G]}}\n", 1));
  run.train();
  const std::string folder = run.root() + "/eval";
  std::string file, picture;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with("outputs.h5")) file = path;
    if (path.ends_with("pairs/input_fake_target_0000001.png")) picture = path;
  }
  REQUIRE(file != "");
  CHECK(picture != "");
  const EvalFile outputs(file);
  const State stored = load_safetensors(kStored).tensors;
  const at::Tensor target = stored.at("target").flatten(0, 1);
  const at::Tensor fake = outputs.read("outputs/fake", 0, 6);
  const at::Tensor bytes = outputs.read("outputs/target", 0, 6);
  CHECK((bytes.scalar_type() == at::kByte));
  CHECK(at::allclose(bytes.to(at::kFloat) / 127.5 - 1, target, 0, 0.5 / 127.5 + 1e-6));
  const at::Tensor l1 = (fake - target).abs().mean(at::IntArrayRef{1, 2, 3});
  const at::Tensor l2 = (fake - target).square().mean(at::IntArrayRef{1, 2, 3});
  CHECK(at::allclose(outputs.read("labels/G_L1", 0, 6), l1, 1e-5, 1e-6));
  CHECK(at::allclose(outputs.read("labels/mine", 0, 6), l2, 1e-5, 1e-6));
  const at::Tensor gan = outputs.read("labels/G_GAN", 0, 6);
  CHECK(at::allclose(outputs.read("labels/loss", 0, 6), gan + 100 * l1 + 3 * l2, 1e-5, 1e-5));
  const at::Tensor psnr = outputs.read("labels/psnr", 0, 6);
  CHECK(at::allclose(psnr.to(at::kFloat), 10 * (4 / l2).log10(), 1e-5, 1e-5));
  CHECK(outputs.read("labels/ssim", 0, 6).numel() == 6);
  const std::string name = "validation/eval_op/pairs/psnr_above_constant";
  const auto line = lines_with(run, name).at(0);
  const double above = logged(line, name);
  CHECK(logged(line, "validation/eval_op/pairs/psnr") ==
        doctest::Approx(psnr.mean().item<double>()));
  const at::Tensor shown = bytes.to(at::kDouble) / 127.5 - 1;
  const at::Tensor error = (shown.mean(0, true) - shown).square().mean(at::IntArrayRef{1, 2, 3});
  const double constant = (10 * (4 / error).log10()).mean().item<double>();
  CHECK(logged(line, "validation/eval_op/pairs/psnr_of_constant") == doctest::Approx(constant));
  CHECK(above == doctest::Approx(psnr.mean().item<double>() - constant));
}

TEST_CASE("with a pool of fakes, averages and bfloat16, a resume ends with the same bits") {
  const std::string config = tiny(R"(
image_pool: 3
ema: {decay: 0.9, networks: [generator]}
eval_weights: ema
precision: bfloat16
ckpt_freq: 2
)",
                                  6);
  TestRun whole(config);
  whole.train();
  TestRun resumed(config, whole, 2);
  resumed.train();
  CHECK(differences(whole.checkpoint(6), resumed.checkpoint(6)) == "");
  TestRun again(config + "checkpoint_modules: [\"^generator\"]\n");
  again.train();
  CHECK(differences(whole.checkpoint(6), again.checkpoint(6)) == "");
  CHECK(
      (whole.checkpoint(2).at("image_pool/images.value").sizes() == at::IntArrayRef{3, 6, 16, 16}));
}

TEST_CASE("mistakes in the config of a pix2pix are one sentence") {
  const auto message = [](const std::string& more) {
    return message_of([&] { TestRun(tiny(more)); });
  };
  CHECK(message("loss_spec: basik\n")
            .starts_with("test.yaml:15: loss_spec: unknown loss spec \"basik\": did you mean "
                         "\"basic\"? Known are: basic, "
                         "basic+vgg, extended, "));
  CHECK(message("label_smoothing: 0.5\n") ==
        "test.yaml:15: label_smoothing: expected a number from 0 to below 0.5, found 0.5");
  CHECK(message("losses: {mine: {loss: l2, weight: 1, tags: [D]}}\n") ==
        "test.yaml:15: losses/mine: the discriminator's losses are D_real and D_fake; one of the "
        "generator has the tag G");
  CHECK(message("loss_spec: basic+vgg\n") ==
        "test.yaml:1: losses/G_VGG: this loss_spec needs {weight: 10, vgg19: vgg19.safetensors} "
        "here; "
        "this makes the file: " +
            std::string(losses::Vgg19::export_line()));
}

}  // namespace pix2pix_test
}  // namespace stepop
