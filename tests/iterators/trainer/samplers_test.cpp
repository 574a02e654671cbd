#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "iterators/trainer/loss_model.h"
#include "iterators/trainer/model_sampler.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/train/networks/network.h"
#include "tests/iterators/trainer/flow_config.h"
#include "tests/iterators/trainer/line_config.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace samplers_test {

/// Notes the weights that it sees.
class NotesWeights : public ModelSampler {
 public:
  NotesWeights(const Config&, const Context&) {}
  Logs sample(LossModel& model) override {
    seen().push_back(model.parameters().front()[0].item<double>());
    is_training() = model.is_training();
    return {.videos = {{"moving", {at::zeros({1, 3, 1, 2, 2}), 4}}}};
  }
  static std::vector<double>& seen() {
    static std::vector<double> values;
    return values;
  }
  static bool& is_training() {
    static bool value = true;
    return value;
  }
};
STEPOP_REGISTER_MODEL_SAMPLER(NotesWeights);

/// The steps whose samples a sampler wrote, of all files in its folder.
std::vector<int64_t> sampled_steps(const TestRun& run, const std::string& sampler) {
  std::vector<int64_t> steps;
  for (const auto& entry :
       std::filesystem::directory_iterator(run.root() + "/train/train/sample_op/" + sampler)) {
    const std::string name = entry.path().filename().string();  // samples_0000002.png
    REQUIRE(name.starts_with("samples_"));
    steps.push_back(std::stoll(name.substr(8)));
  }
  std::ranges::sort(steps);
  return steps;
}

TEST_CASE("sampling changes no bit of the training, and is due by its trigger") {
  const auto config = [](const std::string& more) {
    return R"(
iterator: Trainer
num_threads: 1
batch_size: 4
num_steps: 6
optimizer: {class: AdamW, lr: 1e-2}
ema: {decay: 0.9}
datasets: {train: {class: RandomTensors, size: 12, tensors: {image: [1, 4, 4]}}}
model:
  class: RectifiedFlow
  network: {class: DiT, image_size: [4, 4], channels: 1, hidden_size: 8, depth: 1, num_heads: 2}
  shape: [1, 4, 4]
  steps: 2
)" + more;
  };
  TestRun never(config(""));
  never.train();
  TestRun often(config("sampling: {some: {class: NoiseToImage, count: 3, when: 2}}"));
  often.train();
  State a = never.checkpoint(6);
  State b = often.checkpoint(6);
  for (State* state : {&a, &b}) {
    std::erase_if(*state, [](const auto& item) { return item.first.starts_with("train_means."); });
  }
  CHECK(differences(a, b) == "");
  CHECK(sampled_steps(often, "some") == std::vector<int64_t>{2, 4, 6});
}

TEST_CASE("classes of flows are below their number") {
  const std::string few =
      message_of([&] { TestRun(flow_config("  classes: 2\n")).session.check(); });
  CHECK(few.find("RectifiedFlow: a batch has the classes ") != std::string::npos);
  CHECK(few.find(", and `classes` is 2: 0 to 1") != std::string::npos);
  const std::string sampled = message_of([&] {
    TestRun(
        flow_config("  classes: 4\nsampling: {a: {class: NoiseToImage, classes: 5, count: 1, when: "
                    "1}}\n"))
        .train();
  });
  CHECK(sampled.find("RectifiedFlow: a batch has the classes 0 to 4, and `classes` is 4: 0 to 3") !=
        std::string::npos);
  const std::string untaught = message_of(
      [&] { TestRun(flow_config("  classes: 4\n  class_dropout: 0\n  guidance: 2\n")).train(); });
  CHECK(untaught.find("model/guidance: 2, with class_dropout: 0: guidance needs what the network "
                      "says without a class") != std::string::npos);
  TestRun(flow_config("  classes: 4\n  class_dropout: 0\n")).train();  // guidance: 1
}

TEST_CASE("samplers see averaged weights and evaluation mode") {
  NotesWeights::seen().clear();
  TestRun run(line_config(
      "num_steps: 3\nema: {decay: 0.999999}\nsampling: {own: {class: NotesWeights, when: 1}}"));
  run.train();
  CHECK(NotesWeights::seen().size() == 3);
  for (const double weight : NotesWeights::seen()) {
    CHECK(weight == doctest::Approx(0.5).epsilon(1e-4));  // as at the start
  }
  CHECK(std::abs(run.checkpoint(3).at("model.w")[0].item<double>() - 0.5) > 1e-3);
  CHECK_FALSE(NotesWeights::is_training());
  const std::string video = run.root() + "/train/train/sample_op/own/moving_0000003.png";
  CHECK(read_image(video).sizes() == at::IntArrayRef({1, 2, 2}));
}

/// Paints what prompts say, and plays videos backwards.
class Painter : public LossModel {
 public:
  explicit Painter(const Config&) : w_(register_parameter("w", at::full({1}, 2.0))) {}
  LossOutput forward(const Batch& batch) override {
    return (w_ * batch["video"]).square().flatten(1).mean(1);
  }
  at::Tensor sample(const Batch& conditions) override {
    prompts() = conditions.text("prompt");
    // In [0, 1]: as bright as the first letter.
    const at::Tensor first = conditions["tokens"].select(1, 0).to(at::kFloat).div(256);
    return first.view({-1, 1, 1, 1}).expand({conditions.size(), 1, 2, 2});
  }
  at::Tensor reconstruct(const Batch& batch) override { return batch["video"].flip(1); }
  static std::vector<std::string>& prompts() {
    static std::vector<std::string> texts;
    return texts;
  }

 private:
  at::Tensor w_;
};
STEPOP_REGISTER_MODEL(Painter);

TEST_CASE("prompts become captioned images, and videos play beside what is made of them") {
  TestRun run(R"(
iterator: Trainer
model: Painter
num_threads: 1
num_steps: 2
batch_size: 4
optimizer: {class: SGD, lr: 1e-3}
datasets: {train: {class: RandomTensors, size: 8, tensors: {video: [3, 1, 4, 4]}}}
sampling:
  painted:
    class: TextToImage
    when: 2
    prompts: [a red house, "a dog that is far too long for one line of a picture"]
    preprocess: {class: bytes, length: 3}
    postprocess: zero_one
  played: {class: VideoToVideo, when: 2, count: 2, frames_per_second: 5}
)");
  run.session.check();
  run.train();
  CHECK(Painter::prompts().size() == 2);
  const std::string folder = run.root() + "/train/train/sample_op/";
  const at::Tensor painted = read_image(folder + "painted/samples_0000002.png");
  CHECK(painted.size(0) == 3);
  CHECK(painted.size(1) > 128 + 3 * 16);  // several lines below
  // 'a' is 98 of 256 + 1.
  CHECK(painted[0][14][14].item<double>() == doctest::Approx(98 / 128.0 - 1).epsilon(0.02));
  const std::string played = folder + "played/reconstructions_0000002.png";
  CHECK(read_image(played).sizes() == at::IntArrayRef({1, 4, 16}));  // two pairs of 4 x 8
  CHECK(run_python("import sys; from PIL import Image; print(Image.open(sys.argv[1]).n_frames)",
                   {played}) == "3\n");
}

/// Makes videos that begin dark and end bright: [N, 3, 1, 2, 2] in [0, 1].
class Film : public LossModel {
 public:
  explicit Film(const Config&) : w_(register_parameter("w", at::full({1}, 2.0))) {}
  LossOutput forward(const Batch& batch) override {
    return (w_ * batch["video"]).square().flatten(1).mean(1);
  }
  at::Tensor sample(const Batch& conditions) override {
    return at::linspace(0, 1, 3).view({1, 3, 1, 1, 1}).expand({conditions.size(), 3, 1, 2, 2});
  }

 private:
  at::Tensor w_;
};
STEPOP_REGISTER_MODEL(Film);

TEST_CASE("samplers of a model that makes videos show videos, with the same captions") {
  TestRun run(R"(
iterator: Trainer
model: Film
num_threads: 1
num_steps: 2
batch_size: 4
optimizer: {class: SGD, lr: 1e-3}
datasets: {train: {class: RandomTensors, size: 8, tensors: {video: [3, 1, 2, 2]}}}
sampling:
  told: {class: TextToImage, when: 2, prompts: [a red house, a dog], postprocess: zero_one, frames_per_second: 5}
  free: {class: NoiseToImage, when: 2, classes: 2, count: 3, postprocess: zero_one}
)");
  run.session.check();
  run.train();
  const std::string folder = run.root() + "/train/train/sample_op/";
  // Each frame's milliseconds and the brightness of the first sample.
  const std::string frames =
      "import sys; from PIL import Image\n"
      "f = Image.open(sys.argv[1])\n"
      "for i in range(f.n_frames):\n"
      "  f.seek(i); print(f.info['duration'], "
      "f.convert('L').getpixel((20, 20)))\n";
  CHECK(run_python(frames, {folder + "told/samples_0000002.png"}) ==
        "200.0 0\n200.0 128\n200.0 255\n");
  CHECK(read_image(folder + "told/samples_0000002.png").size(1) > 128 + 16);  // captions below
  CHECK(run_python(frames, {folder + "free/samples_0000002.png"}) ==
        "125.0 0\n125.0 128\n125.0 255\n");
}

TEST_CASE("a sampler is due after each epoch, unless it says when") {
  // An epoch has three steps.
  TestRun run(
      line_config("num_steps: 7\nsampling: {a: {class: NoiseToImage}, "
                  "b: {class: NoiseToImage, when: {every: 2, at_start: true}}}"));
  run.train();
  CHECK(sampled_steps(run, "a") == std::vector<int64_t>{3, 6});
  CHECK(sampled_steps(run, "b") == std::vector<int64_t>{0, 2, 4, 6});
}

TEST_CASE("a sampler is a map, and its keys are known") {
  const auto error = [](const std::string& sampling) {
    return message_of([&] { TestRun(line_config("num_steps: 3\nsampling: " + sampling)); });
  };
  CHECK(error("NoiseToImage")
            .find("sampling: expected a map of samplers such as {digits: {class: "
                  "NoiseToImage, when: 500}}, found") != std::string::npos);
  CHECK(error("{a: NoiseToImage}")
            .ends_with("sampling/a: expected a map such as {class: NoiseToImage, when: 500}, found "
                       "\"NoiseToImage\""));
  CHECK(error("{a: {class: NoiseToImages}}").find("NoiseToImage") != std::string::npos);
  CHECK(error("{a: {class: TextToImage, prompts: []}}")
            .ends_with("sampling/a/prompts: expected at least one text, found []"));
  CHECK(error("{a: null}") == "no error");
}

}  // namespace samplers_test
}  // namespace stepop
