// Evaluators: their numbers, when they are on, what they leave, and what is wrong with a config.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/rand.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <string>

#include "eval_out/callbacks/callback.h"
#include "eval_out/read/eval_reader.h"
#include "iterators/extensible/step/evaluator.h"
#include "models/super_resolution/srflow.h"
#include "runtime/core/formats/safetensors.h"
#include "tests/iterators/extensible/evaluator_runs.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/test_run.h"

namespace stepop {
namespace extensible_evaluators_test {

using namespace extensible;

/// An evaluator by itself over pictures of its own, as `name`.
EvalOutputs measured(const std::string& yaml, const at::Tensor& real, const at::Tensor& fake) {
  static TestRun run(config("{}"));
  const Config params = test_config(yaml);
  Keys keys;
  Ports ports(run.session.context(), keys, "");
  const EvaluatorKind kind =
      evaluators().factory(params.get<std::string>("type"), params, "type")();
  const auto evaluator = kind.make(params, ports);
  keys.slot("hq"), keys.slot("gen");
  StepState state(keys);
  state.clear();
  state.set(keys.slot("hq"), real);
  state.set(keys.slot("gen"), fake);
  EvalOutputs made;
  evaluator->evaluate(state, {0, false}, "name", made);
  CHECK(params.unknown_keys() == "");
  return made;
}

at::Tensor label(const std::string& options, const at::Tensor& real, const at::Tensor& fake) {
  return measured("{real: hq, fake: gen, " + options + "}", real, fake).labels.at("name").value();
}

TEST_CASE("psnr and ssim are what BasicSR reports, in colours and of their luma") {
  const State expected =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/extensible/metrics.safetensors").tensors;
  const at::Tensor& real = expected.at("real");
  const at::Tensor& fake = expected.at("fake");
  for (const char* type : {"psnr", "ssim"}) {
    for (const char* channels : {"rgb", "y"}) {
      for (const int border : {0, 4}) {
        const std::string name = fmt::format("{}_{}_{}", type, channels, border);
        CAPTURE(name);
        const std::string options =
            fmt::format("type: {}, channels: {}, crop_border: {}", type, channels, border);
        CHECK(at::allclose(label(options + ", range: [0, 1]", real, fake), expected.at(name), 1e-9,
                           0));
        CHECK(at::allclose(label(options, real * 2 - 1, fake * 2 - 1), expected.at(name), 1e-6, 0));
      }
    }
    CHECK(
        at::allclose(label(fmt::format("type: {}, range: [0, 1], round: false", type), real, fake),
                     expected.at(std::string(type) + "_raw"), 1e-10, 0));
  }
}

TEST_CASE("features are those of the network, of pictures as it wants them") {
  const at::Tensor real = at::rand({3, 3, 4, 4}) * 2 - 1;
  const at::Tensor fake = at::rand({3, 3, 4, 4}) * 2 - 1;
  const std::string mean = networks().path("mean.pt");
  const auto outputs = [&](const std::string& options) {
    return measured("{type: fid, real: hq, fake: gen, " + options + "}", real, fake).outputs;
  };
  const auto features = [&](const std::string& options, const char* key) {
    return std::get<at::Tensor>(outputs(options).at(key));
  };
  const at::Tensor unit = (real + 1) / 2;
  CHECK(at::allclose(features("features: " + mean, "name/real"), unit.mean(at::IntArrayRef{2, 3}),
                     1e-5, 1e-6));
  CHECK(at::allclose(features("features: {class: TorchScript, path: " + mean + "}", "name/fake"),
                     ((fake + 1) / 2).mean(at::IntArrayRef{2, 3}), 1e-5, 1e-6));
  CHECK(at::allclose(
      features("mean: [0.5, 0.25, 0], std: [0.5, 1, 2], features: " + mean, "name/real")
          .select(1, 2),
      unit.select(1, 2).mean(at::IntArrayRef{1, 2}) / 2, 1e-5, 1e-6));
  // The corner's features are [B, 3, 2], which become [B, 6]; a picture of 2 x 2 has means of 2
  // x 2.
  const at::Tensor corner =
      features("size: 2, features: " + networks().path("corner.pt"), "name/real");
  CHECK(corner.sizes() == at::IntArrayRef{3, 6});
  CHECK(message_of([&] {
          outputs("features: " + networks().path("sum.pt"));
        }).find("expected features [B, D] of float32 [3, 3, 4, 4], the network made ") !=
        std::string::npos);
  CHECK(message_of([&] { outputs("mean: [0.5, 0.5], features: " + mean); }) ==
        "mean has 2 numbers, and pictures 3 channels");
}

TEST_CASE("an evaluation has each example's number in its file, and the split's in its scalars") {
  TestRun run(
      config("{psnr: {type: psnr, real: hq, fake: gen, range: [0, 1], for: g}, fid: {type: "
             "fid, real: hq, fake: gen, range: [0, 1], features: " +
             networks().path("mean.pt") +
             "}, kid: {type: kid, features_of: fid, subsets: 4, subset_size: 5}}"));
  run.train();
  const nlohmann::json numbers = numbers_of(run, 4);
  const EvalFile file = outputs_of(run, 4);
  const at::Tensor psnr = file.read("labels/psnr");
  CHECK(psnr.sizes() == at::IntArrayRef{6});
  CHECK(numbers["validation/eval_op/psnr"].get<double>() ==
        doctest::Approx(psnr.mean().item<double>()));
  CHECK(file.read("outputs/fid/real").sizes() == at::IntArrayRef{6, 3});
  CHECK(numbers["validation/eval_op/fid/fid"].get<double>() > 0);
  CHECK(numbers.contains("validation/eval_op/kid/kid"));
  CHECK(numbers["validation/eval_op/kid/deviation"].get<double>() > 0);
}

TEST_CASE("an evaluator is on when its gate is open, and the callback goes by it") {
  const std::string text = config(
      "{late: {type: psnr, real: hq, fake: gen, range: [0, 1], after: 3}, fid: "
      "{type: fid, real: hq, fake: gen, range: [0, 1], every: 4, features: " +
      networks().path("mean.pt") + "}}");
  TestRun run(text);
  run.train();
  const nlohmann::json before = numbers_of(run, 2);
  CHECK_FALSE(before.contains("validation/eval_op/late"));
  CHECK_FALSE(before.contains("validation/eval_op/fid/fid"));
  CHECK_FALSE(outputs_of(run, 2).contains("labels/late"));
  const nlohmann::json after = numbers_of(run, 4);
  CHECK(after.contains("validation/eval_op/late"));
  CHECK(after.contains("validation/eval_op/fid/fid"));

  // Afterwards a closed gate is named, and is no failure.
  const Config all = test_config(text);
  const auto data = datasets().build(all, "datasets/validation");
  const CallbackResults found =
      EvaluationCallbacks(test_config("extra: {looks: {late: evaluator}}\n" + text), "extra/looks")
          .call(run.root(), *data, outputs_of(run, 2));
  CHECK(found.logs.empty());
  CHECK(found.failures.empty());
  CHECK(found.silent.at("late").ends_with(
      "eval/evaluators/late/after is 3: nothing is measured at step 2; stepop -p RUN "
      "--eval/evaluators/late/after null measures it"));
}

TEST_CASE("the callback of an evaluator of each example gives the mean; of none there are names") {
  const std::string text = config("{same: {type: psnr, real: hq, fake: gen, range: [0, 1]}}");
  TestRun run(text);
  run.train();
  const Config all = test_config(text);
  const auto data = datasets().build(all, "datasets/validation");
  const EvalFile file = outputs_of(run, 4);
  const auto look = [&](const std::string& name) {
    return callbacks().factory("evaluator", all,
                               "iterator")({run.root(), *data, file, all, all, name});
  };
  CHECK(look("same").scalars.at("mean").read("mean") ==
        doctest::Approx(numbers_of(run, 4)["validation/eval_op/same"].get<double>()));
  CHECK(message_of([&] { look("ev"); }) ==
        "eval/evaluators has no evaluator \"ev\"; there are: same");
}

/// An evaluator of one's own: the mean of a key, and the largest of all.
class Brightness : public Evaluator {
 public:
  Brightness(const Config& params, Ports& ports) : key_(ports.reads(params, "key")) {}
  void evaluate(const StepState& state, const Iteration&, const std::string& name,
                EvalOutputs& made) override {
    made.labels.set(name, state.tensor(key_).flatten(1).mean(1));
  }
  static Scalars over_split(const CallbackArguments& arguments) {
    return {{"max", arguments.data_out.read("labels/" + arguments.name).max()}};
  }

 private:
  Slot key_;
};
STEPOP_REGISTER_EVALUATOR(test_brightness, Brightness, {"For tests.", {{"key", "", ""}}});

TEST_CASE("an evaluator of your own has a number of the whole split") {
  TestRun run(config("{light: {type: test_brightness, key: hq}}"));
  run.train();
  const nlohmann::json numbers = numbers_of(run, 4);
  CHECK(numbers["validation/eval_op/light/max"].get<double>() >
        numbers["validation/eval_op/light"].get<double>());
}

/// What a training with these evaluators says before its first batch.
std::string mistake(const std::string& evaluators) {
  return message_of([&] {
    TestRun run(config(evaluators));
    run.session.check();
  });
}

TEST_CASE("mistakes in an evaluator are found before the first batch, with their place") {
  const std::string place = "test.yaml:19: eval/evaluators/e/";
  const auto with = [](const std::string& options) {
    return mistake("{e: {real: hq, fake: gen, " + options + "}}");
  };
  CHECK(with("type: psnr") == "no error");
  CHECK(
      with("type: psmr")
          .starts_with(place +
                       "type: unknown evaluator \"psmr\": did you mean \"psnr\"? Known are: psnr"));
  CHECK(with("type: psnr, chanels: y")
            .find("unknown key \"eval/evaluators/e/chanels\": did you mean "
                  "\"eval/evaluators/e/channels\"?") != std::string::npos);
  CHECK(with("type: psnr, channels: yuv") == place + "channels: expected rgb or y, found \"yuv\"");
  CHECK(with("type: psnr, range: [1, 0]") ==
        place +
            "range: expected two numbers, the values of black and of white, such as [-1, 1] or "
            "[0, 1], found [1, 0]");
  CHECK(with("type: psnr, crop_border: -1")
            .starts_with(place + "crop_border: expected 0 or more, found -1"));
  CHECK(with("type: psnr, for: h").starts_with(place + "for: no network \"h\"; there are: g"));
  CHECK(mistake("{e: {type: psnr, real: hq, fake: genn}}") ==
        place + "fake: nothing makes \"genn\"; there are: lq, gen, hq, index; did you mean gen?");
  CHECK(mistake("{e: {type: psnr, real: hq}}").starts_with(place + "fake: missing"));
  CHECK(mistake("[psnr]") ==
        "test.yaml:19: eval/evaluators: expected a map of names and evaluators, such as {psnr: "
        "{type: psnr, real: hq, fake: gen}}, found [psnr]");
  CHECK(with("type: ssim, crop_border: 3") ==
        "validation/eval_op: test.yaml:19: eval/evaluators/e (ssim): SSIM "
        "needs images of at least 11 x 11 pixels, found float64 [4, 3, 10, 10]");
}

TEST_CASE("mistakes with features are found before the first batch") {
  const std::string place = "test.yaml:19: eval/evaluators/e/";
  const auto with = [](const std::string& options) {
    return mistake("{e: {real: hq, fake: gen, " + options + "}}");
  };
  CHECK(
      with("type: fid").starts_with(place + "features: missing: a TorchScript file of a network"));
  CHECK(with("type: fid, features: none.pt").starts_with(place + "features: no such file: "));
  CHECK(with("type: fid, features: " + networks().path("make.py"))
            .find("make.py: this is no archive of PyTorch's, not TorchScript; export the module") !=
        std::string::npos);
  const std::string mean = networks().path("mean.pt");
  CHECK(with("type: fid, size: [3], features: " + mean) ==
        place + "size: expected a number of pixels or [H, W], found [3]");
  CHECK(with("type: fid, std: [0], features: " + mean) ==
        place + "std: expected numbers other than 0, found [0]");
  CHECK(with("type: kid, subsets: 0, features: " + mean)
            .starts_with(place + "subsets: expected 1 or more, found 0"));
  CHECK(mistake("{e: {type: kid, features_of: f}}") ==
        place +
            "features_of: expected the name of an evaluator of the type fid or kid that has "
            "features of its own, found \"f\"");
  const std::string fid = "f: {type: fid, real: hq, fake: gen, features: " + mean;
  CHECK(mistake("{" + fid + ", after: 2}, e: {type: kid, features_of: f}}") ==
        place + "features_of: f is on at other times: give both the same after, before and every");
  CHECK(mistake("{" + fid + "}, e: {type: kid, features_of: f, real: hq}}") ==
        place + "real: not with features_of: they are those of f");
}

TEST_CASE("true pictures beyond the range, and pictures of two shapes, end the evaluation") {
  const at::Tensor real = at::rand({2, 3, 12, 12}) * 2 - 1;
  CHECK(message_of([&] {
          label("type: psnr, range: [0, 1]", real, real);
        }).starts_with("the true pictures have values from -"));
  CHECK(message_of([&] { label("type: psnr", real, real.narrow(2, 0, 6)); }) ==
        "real and fake differ in shape: float32 [2, 3, 12, 12] and float32 [2, 3, 6, 12]");
  CHECK(message_of([&] { label("type: psnr, crop_border: 6", real, real); }) ==
        "nothing is left of float32 [2, 3, 12, 12] without a crop_border of 6");
  CHECK(message_of([&] { label("type: psnr", real[0], real[0]); }) ==
        "expected pictures [B, C, H, W], found float32 [3, 12, 12]");
}

TEST_CASE("evaluators of DL-Art-School that nobody can run are refused with a sentence") {
  const auto refused = [](const std::string& type) {
    return mistake("{e: {type: " + type + ", for: g, batch_size: 4}}");
  };
  CHECK(refused("sr_fid") ==
        "test.yaml:19: eval/evaluators/e/type: \"sr_fid\" is an evaluator of DL-Art-School: it is "
        "fid here: {type: fid, real: hq, fake: gen, features: inception.pt}, of pictures that the "
        "steps make of the validation split, or with dataset: NAME of datasets/NAME");
  CHECK(refused("wer").ends_with("it cannot run there either: what it imports is gone"));
  for (const char* type : {"style_transfer", "sr_style_transfer", "fid_for_structural_nets",
                           "sr_diffusion_fid", "single_point_pair_contrastive_eval", "mel",
                           "audio_diffusion_fid", "music_diffusion_fid"}) {
    CAPTURE(type);
    CHECK(refused(type).find("is an evaluator of DL-Art-School: ") != std::string::npos);
  }
}

constexpr const char* kFlow = R"(
iterator: ExtensibleTrainer
num_threads: 1
batch_size: 2
num_steps: 2
log_freq: 1
datasets:
  train: {class: RandomTensors, size: 4, tensors: {lq: [3, 4, 4], hq: [3, 16, 16]}}
  faces: {class: RandomTensors, size: 3, seed: 5, tensors: {lq: [3, 4, 4], hq: [3, 16, 16]}}
networks:
  g: {which_model_G: srflow, nf: 4, nb: 2, gc: 2, K: 1, flow: {L: 3, split: {enable: true}}}
steps:
  s:
    training: g
    optimizer_params: {lr: 0.001}
    injectors:
      z: {type: generator, generator: g, in: [hq, lq, None, None, false], out: [z, nll]}
      gen: {every: 2, type: generator, generator: g, in: [None, lq, None, .4, True], out: [gen]}
    losses: {likelihood: {type: direct, key: nll, weight: 1}}
logger: {visuals: [gen, hq, lq], visual_debug_rate: 2}
eval_hook: {freq: 2}
)";

TEST_CASE(
    "flow_gaussian_nll is how likely the latents of SRFlow are, and a step trains by its loss") {
  TestRun run(std::string(kFlow) +
              "eval: {evaluators: {gauss: {for: g, type: flow_gaussian_nll, dataset: faces}}}\n");
  run.train();
  CHECK(numbers_of(run, 2).at("faces/gauss").get<double>() < 0);
  const auto network =
      std::dynamic_pointer_cast<srflow::SrFlow>(run.session.context().networks.get("g"));
  REQUIRE(network);
  const Config params = test_config("for: g");
  Keys keys;
  Ports ports(run.session.context(), keys, "");
  const auto evaluator =
      evaluators().factory("flow_gaussian_nll", params, "type")().make(params, ports);
  StepState state(keys);
  state.clear();
  const at::Tensor hq = at::rand({2, 3, 16, 16});
  const at::Tensor lq = at::rand({2, 3, 4, 4});
  state.set(keys.slot("hq"), hq);
  state.set(keys.slot("lq"), lq);
  EvalOutputs made;
  const at::NoGradGuard no_grad;
  evaluator->evaluate(state, {0, false}, "name", made);
  const auto latents = network->encode(hq, lq, /*adds_noise=*/false).latents;
  REQUIRE(latents.size() == 2);
  double sum = 0;
  for (const auto& z : latents) {  // of the first example
    sum += -0.5 * (z[0].square().sum().item<double>() +
                   static_cast<double>(z[0].numel()) * std::log(2 * std::numbers::pi));
  }
  CHECK(made.labels.at("name").value()[0].item<double>() == doctest::Approx(sum / 2).epsilon(1e-5));
  CHECK(mistake("{e: {type: flow_gaussian_nll, for: g}}") ==
        "test.yaml:19: eval/evaluators/e/for: the network \"g\" is no srflow: it has no latents");
}

TEST_CASE("evaluators without anything to evaluate are a mistake") {
  std::string text = config("{e: {type: psnr, real: hq, fake: gen}}");
  const size_t begin = text.find("  validation:");
  text.erase(begin, text.find("networks:") - begin);
  text.erase(text.find("eval_hook"), text.find("eval:") - text.find("eval_hook"));
  CHECK(message_of([&] { TestRun run(text); }) ==
        "test.yaml:17: eval/evaluators: nothing is evaluated: there is no datasets/validation");
}

}  // namespace extensible_evaluators_test
}  // namespace stepop
