// ExtensibleTrainer by the config that ships, with the real binary.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/code_run.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"

namespace stepop {
namespace cli_extensible_test {

const std::string kToy = "'" STEPOP_SOURCE_DIR "/configs/extensible/toy_srgan.yaml'";

TEST_CASE("toy_srgan trains as its config says: losses, gates, pictures") {
  const ScratchFolder folder;
  const auto trained = run_well(folder, "stepop -n toy -b " + kToy + " -t");
  CHECK(trained.out.find("ended: all 20 steps are done") != std::string::npos);
  const std::string run = folder.path(only_run(folder));
  std::vector<nlohmann::json> metrics;
  for (const auto& line : lines_of(read_bytes(run + "/train/metrics.jsonl"))) {
    metrics.push_back(nlohmann::json::parse(line));
  }
  const auto at_step = [&](int64_t step) {
    for (const auto& line : metrics) {
      if (line["step"] == step && line.contains("train/train_op/loss_pix")) return line;
    }
    return nlohmann::json();
  };
  // Iterations count from 0: step 4 is iteration 3, the last one without the discriminator.
  const auto before = at_step(4);
  REQUIRE(before.is_object());
  CHECK_FALSE(before.contains("train/train_op/loss_gan_d"));
  CHECK(before.contains("train/train_op/loss_gan_g"));
  CHECK(before["train/train_op/loss_generator_total"] == before["train/train_op/loss_pix"]);
  const auto after = at_step(5);
  for (const char* name :
       {"loss_gan_d", "loss_gan_d_d_fake", "loss_gan_d_d_real", "loss_gan_d_gradient_penalty",
        "loss_discriminator_total", "loss_pix", "loss_gan_g", "loss_generator_total"}) {
    CAPTURE(name);
    CHECK(after.contains(std::string("train/train_op/") + name));
  }
  const double total = after["train/train_op/loss_generator_total"];
  const double pix = after["train/train_op/loss_pix"];
  const double gan = after["train/train_op/loss_gan_g"];
  CHECK(total == doctest::Approx(pix + 0.005 * gan).epsilon(1e-4));
  const std::string pictures = run + "/train/train/visuals_op/";
  for (const std::string name : {"gen", "hq", "lq", "lq_up"}) {
    CAPTURE(name);
    CHECK(std::filesystem::exists(pictures + name + "_0000001.png"));
    CHECK(std::filesystem::exists(pictures + name + "_0000016.png"));
  }
}

TEST_CASE("start_step makes a later iteration the first") {
  const ScratchFolder folder;
  run_well(folder, "stepop -n toy -b " + kToy + " -t --start_step 3 --num_steps 3");
  const std::string run = folder.path(only_run(folder));
  // Iteration 4 is the first with the discriminator, iteration 5 has pictures.
  const auto first = nlohmann::json::parse(lines_of(read_bytes(run + "/train/metrics.jsonl"))[0]);
  CHECK(first["step"] == 1);
  CHECK(first.contains("train/train_op/loss_gan_d"));
  const std::string picture = run + "/train/train/visuals_op/gen_000000";
  CHECK_FALSE(std::filesystem::exists(picture + "1.png"));
  CHECK(std::filesystem::exists(picture + "2.png"));
}

TEST_CASE("diffusion.yaml trains, samples in evaluations, and logs samples beside real digits") {
  const ScratchFolder folder;
  run_well(folder,
           "stepop -n d -b '" STEPOP_SOURCE_DIR
           "/configs/extensible/diffusion.yaml' -t --num_steps 2 --batch_size 8 "
           "--test_batch_size 4 --steps/generator/injectors/ddpm/respaced_timestep_spacing "
           "3 --steps/generator/injectors/ddim/respaced_timestep_spacing 3 --log_ops/1/when 2",
           kStillAverages);
  const std::string run = folder.path(only_run(folder));
  for (const std::string name : {"shown_image", "shown_ddim", "shown_ddpm"}) {
    CAPTURE(name);
    CHECK(std::filesystem::exists(run + "/train/validation/log_op/" + name + "_0000002.png"));
  }
  const auto inspected = run_well(folder, "stepop inspect " + only_run(folder));
  CHECK(inspected.out.find("outputs/ddim") != std::string::npos);
  CHECK(inspected.out.find("[4, 1, 8, 8]") != std::string::npos);
}

TEST_CASE("--check shows the plan; an evaluation writes what the config names") {
  const ScratchFolder folder;
  const auto checked = run_well(folder, "stepop -b " + kToy + " -t --check");
  CHECK(checked.out.find("steps in iteration ") != std::string::npos);
  CHECK(checked.out.find("g_fake  generator ") != std::string::npos);
  CHECK(checked.out.find("float32 [4, 3, 16, 16]") != std::string::npos);
  const auto evaluated = run_well(
      folder,
      "stepop -n toy -b " + kToy +
          " -t --num_steps 6 --datasets/validation '{class: RandomTensors, size: 6, tensors: "
          "{hq: [3, 16, 16], lq: [3, 8, 8]}, seed: 1}'");
  const auto inspected = run_well(folder, "stepop inspect " + only_run(folder));
  CHECK(inspected.out.find("outputs/gen") != std::string::npos);
  CHECK(inspected.out.find("[6, 3, 16, 16]") != std::string::npos);
}

TEST_CASE("an injector, a loss and an evaluator of your own come from one file, and are checked") {
  const ScratchFolder folder;
  // The injector and the network are those of the page.
  const std::string page = read_bytes(STEPOP_SOURCE_DIR "/iterators/extensible/README.md");
  std::string code;
  for (size_t begin = page.find("```cpp\n"); begin != std::string::npos;
       begin = page.find("```cpp\n", begin)) {
    begin += 7;
    code += page.substr(begin, page.find("```", begin) - begin);
  }
  folder.write("mine.cpp", code + R"(
#include "iterators/extensible/step/evaluator.h"
#include "iterators/extensible/step/loss.h"

class Light : public stepop::extensible::Evaluator {
 public:
  Light(const stepop::Config& params, stepop::extensible::Ports& ports)
      : key_(ports.reads(params, "key")) {}
  void evaluate(const stepop::extensible::StepState& state, const stepop::extensible::Iteration&,
                const std::string& name, stepop::EvalOutputs& made) override {
    made.labels.set(name, state.tensor(key_).flatten(1).mean(1));
  }
  static stepop::Scalars over_split(const stepop::CallbackArguments& arguments) {
    return {{"max", arguments.data_out.read("labels/" + arguments.name).max()}};
  }

 private:
  stepop::extensible::Slot key_;
};
STEPOP_REGISTER_EVALUATOR(light, Light, {"How light pictures are.", {{"key", "", ""}}});

class Smooth : public stepop::extensible::Loss {
 public:
  Smooth(const stepop::Config& params, stepop::extensible::Ports& ports)
      : key_(ports.reads(params, "key")) {}
  at::Tensor compute(stepop::extensible::StepState& state, const stepop::extensible::Iteration&,
                     stepop::Scalars&) override {
    const at::Tensor& x = state.tensor(key_);
    return (x.slice(3, 1) - x.slice(3, 0, -1)).abs().mean();
  }

 private:
  stepop::extensible::Slot key_;
};
STEPOP_REGISTER_LOSS(smooth, Smooth, {"Few edges.", {{"key", "", ""}}});
)");
  folder.write("mine.yaml",
               "code: [mine.cpp]\nsteps:\n  generator:\n"
               "    injectors: {dark: {type: darker, in: gen, out: dark, factor: 0.25}}\n"
               "    losses: {smooth: {type: smooth, key: dark, weight: 0.1}}\n"
               "  critic:\n    training: critic\n    optimizer_params: {lr: 1}\n"
               "    injectors: {c: {type: discriminator, discriminator: critic, in: hq, out: c}}\n"
               "    losses: {c: {type: direct, key: c, weight: 1}}\n"
               "networks: {critic: {type: discriminator, which_model: Critic}}\n"
               "datasets: {validation: {class: RandomTensors, size: 6, tensors: {hq: [3, 16, 16], "
               "lq: [3, 8, 8]}}}\n"
               "eval: {evaluators: {light: {type: light, key: dark}}}\n");
  const std::string start = "stepop -n mine -b " + kToy + " mine.yaml -t --num_steps 6 ";
  const CommandResult trained = run_with_cache(folder, start);
  CHECK(trained.exit_code == 0);
  CHECK(trained.out.find(" loss_smooth ") != std::string::npos);
  CHECK(trained.out.find(" critic_bias -0.01") != std::string::npos);  // after a large update
  // The number of the whole split is found again from the file.
  const CommandResult looked = run_with_cache(folder, "stepop eval " + only_run(folder));
  CHECK(looked.exit_code == 0);
  CHECK(looked.out.find("validation/eval_op/light/max") != std::string::npos);
  const CommandResult wrong =
      run_with_cache(folder, start + "--steps/generator/injectors/dark/factr 1");
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err.find("did you mean \"steps/generator/injectors/dark/factor\"?") !=
        std::string::npos);
}

TEST_CASE("sr.yaml and sr_gan.yaml train, and their evaluators give numbers for each picture") {
  const ScratchFolder folder;
  const std::string few =
      " -t --num_steps 2 --batch_size 2 --test_batch_size 2 --datasets/validation/dataset/examples "
      "3 --networks/generator/nb 1 ";
  run_well(folder, "stepop -n sr -b '" STEPOP_SOURCE_DIR "/configs/extensible/sr.yaml'" + few);
  const std::string run = only_run(folder);
  const auto inspected = run_well(folder, "stepop inspect " + run);
  for (const char* name : {"psnr", "psnr_y", "ssim_y", "bicubic_psnr", "bicubic_psnr_y"}) {
    CAPTURE(name);
    CHECK(inspected.out.find(std::string("labels/") + name) != std::string::npos);
  }
  const ScratchFolder other;
  const auto gan =
      run_well(other, "stepop -n gan -b '" STEPOP_SOURCE_DIR "/configs/extensible/sr_gan.yaml'" +
                          few + "--init_from '{path: " + folder.path(run) +
                          "/train/checkpoints/latest.safetensors, network: generator}'");
  CHECK(gan.out.find("loss_gan_d") != std::string::npos);
}

TEST_CASE("a misspelt option ends the start with its place, before there is a folder") {
  const ScratchFolder folder;
  const CommandResult wrong =
      run_in(folder, "stepop -n toy -b " + kToy + " -t --steps/generator/losses/pix/fake genn");
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err.find("command line: steps/generator/losses/pix/fake: nothing makes \"genn\"; "
                       "there are: ") != std::string::npos);
  CHECK(wrong.err.find("did you mean gen?") != std::string::npos);
  CHECK(only_run(folder) == "");
}

}  // namespace cli_extensible_test
}  // namespace stepop
