// The injectors of a diffusion, in trainings.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "iterators/extensible/step/injector.h"
#include "runtime/core/base/error.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace extensible_diffusion_test {

using namespace extensible;

/// What the networks below saw.
struct Seen {
  std::vector<at::Tensor> timesteps;
  std::vector<bool> training;
  at::Tensor weight;  ///< As it was in the last call.
};
Seen& seen() {
  static Seen of_all;
  return of_all;
}

/// x times a number, and that number times twice as many channels where variances are learned.
class TestDenoiser : public MultiNetwork {
 public:
  explicit TestDenoiser(const Config& params)
      : outputs_(params.get_at_least("outputs", 1, 1)),
        weight_(register_parameter("weight", at::zeros({1}) + 0.5)) {}
  std::vector<std::string> input_names() const override { return {"x", "timesteps", "shift"}; }
  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override {
    seen().timesteps.push_back(inputs[1].clone());
    seen().training.push_back(is_training());
    seen().weight = weight_.detach().clone();
    at::Tensor made = inputs[0] * weight_;
    if (inputs[2].defined()) made = made + inputs[2];
    if (outputs_ == 2) return {at::cat({made, made * 0.1}, 1), made.detach() * 2};
    return {made};
  }

 private:
  int64_t outputs_;
  at::Tensor weight_;
};
STEPOP_REGISTER_MODEL(TestDenoiser, {"For tests.", {{"outputs", "1", ""}}});

constexpr const char* kProcess =
    "beta_schedule: {schedule_name: cosine, num_diffusion_timesteps: 20}, "
    "diffusion_args: {model_mean_type: epsilon, model_var_type: ";

/// A training whose one step has these injectors.
std::string config(const std::string& injectors,
                   const std::string& losses =
                       "{type: direct, key: "
                       "loss, weight: 1}",
                   const std::string& more = "") {
  return fmt::format(
      "iterator: ExtensibleTrainer\ndevice: cpu\nnum_threads: 1\nbatch_size: 4\nnum_steps: "
      "6\nlog_freq: 1000\n"
      "seed: 3\ndatasets: {{train: {{class: RandomTensors, size: 40, tensors: {{x: [3, 4, "
      "4]}}}}}}\n"
      "networks: {{g: {{which_model: TestDenoiser, outputs: {}}}}}\n{}"
      "steps:\n  s:\n    training: g\n    optimizer_params: {{lr: 0.01}}\n    injectors:\n{}"
      "    losses: {{l: {}}}\n",
      injectors.find("learned") == std::string::npos ? 1 : 2, more, injectors, losses);
}

std::string trained(const std::string& more = "", const std::string& variance = "fixed_small",
                    const std::string& loss = "mse") {
  return fmt::format(
      "      d: {{type: gaussian_diffusion, in: x, generator: g, out: loss, {}{}, loss_type: "
      "{}}}{}}}\n",
      kProcess, variance, loss, more);
}

std::string sampled(const std::string& more, const std::string& args = "fixed_small") {
  return fmt::format(
      "      i: {{type: gaussian_diffusion_inference, generator: g, out: made, {}{}}}{}}}\n",
      kProcess, args, more);
}

std::string message(const std::string& yaml) {
  return message_of([&] { TestRun run(yaml); });
}

void check_message(const std::string& yaml, const std::string& expected) {
  const std::string found = message(yaml);
  CAPTURE(found);
  CHECK(found.find(expected) != std::string::npos);
}

TEST_CASE("a diffusion is trained, resumes with the same bits, and its sampler with it") {
  for (const std::string sampler : {"uniform", "loss-second-moment"}) {
    CAPTURE(sampler);
    // Few timesteps, so that the sampler begins to choose before the stop.
    const std::string yaml =
        "iterator: ExtensibleTrainer\ndevice: cpu\nnum_threads: 1\nbatch_size: 20\nnum_steps: 12\n"
        "ckpt_freq: 6\nlog_freq: 1000\nseed: 3\n"
        "datasets: {train: {class: RandomTensors, size: 40, tensors: {x: [3, 4, 4]}}}\n"
        "networks: {g: {which_model: TestDenoiser}}\ntrain: {mega_batch_factor: 2}\n"
        "steps: {s: {training: g, optimizer_params: {lr: 0.01}, injectors: {d: {type: "
        "gaussian_diffusion, in: x, generator: g, out: loss, beta_schedule: {schedule_name: "
        "cosine, num_diffusion_timesteps: 3}, diffusion_args: {model_mean_type: epsilon, "
        "model_var_type: fixed_large}, sampler_type: " +
        sampler + "}}, losses: {l: {type: direct, key: loss, weight: 1}}}}\n";
    TestRun whole(yaml);
    whole.train();
    const State end = whole.checkpoint(12);
    CHECK(end.contains("steps/s/injectors/d/timesteps.losses") ==
          (sampler == "loss-second-moment"));
    TestRun resumed(yaml, whole, 6);
    resumed.train();
    CHECK(differences(resumed.checkpoint(12), end) == "");
    if (sampler != "uniform") {
      const State middle = whole.checkpoint(6);
      CHECK(at::equal(middle.at("steps/s/injectors/d/timesteps.counts"),
                      at::zeros({3}, at::kLong) + 10));
    }
  }
}

TEST_CASE("a diffusion logs its errors at late timesteps, and whether its sampler is warm") {
  const auto logged = [](int timesteps, const std::string& sampler) {
    // The timesteps of the eight examples are spread: 0, 1, ... 7 of 8.
    TestRun run(
        "iterator: ExtensibleTrainer\ndevice: cpu\nnum_threads: 1\nbatch_size: 8\nnum_steps: 1\n"
        "seed: 3\ndatasets: {train: {class: RandomTensors, size: 8, tensors: {x: [3, 4, 4]}}}\n"
        "networks: {g: {which_model: TestDenoiser}}\n"
        "steps: {s: {training: g, optimizer_params: {lr: 0.01}, injectors: {d: {type: "
        "gaussian_diffusion, in: x, generator: g, out: loss, deterministic_timesteps_every: 1, "
        "beta_schedule: {schedule_name: cosine, num_diffusion_timesteps: " +
        std::to_string(timesteps) +
        "}, diffusion_args: {model_mean_type: epsilon, model_var_type: fixed_large}, "
        "sampler_type: " +
        sampler + "}}, losses: {l: {type: direct, key: loss, weight: 1}}}}\n");
    run.train();
    return run.metrics().back();
  };
  const std::string place = "train/train_op/d_";
  const auto eight = logged(8, "uniform");
  CHECK(eight.at(place + "upper_quantile_mse_loss").get<double>() > 0);
  CHECK(eight.at(place + "mid_upper_quantile_mse_loss").get<double>() > 0);
  CHECK_FALSE(eight.contains(place + "sampler_warmed_up"));
  // 3 is not above three quarters of 4, and no timestep lies between 2 and 3.
  const auto four = logged(4, "loss-second-moment");
  CHECK_FALSE(four.contains(place + "upper_quantile_mse_loss"));
  CHECK_FALSE(four.contains(place + "mid_upper_quantile_mse_loss"));
  CHECK(four.at(place + "sampler_warmed_up").get<double>() == 0);
}

TEST_CASE("what a diffusion writes: losses of each example, x at the start, further outputs") {
  TestRun run(config(trained(", out_key_vb_loss: vb, out_key_x_start: start, "
                             "extra_model_output_keys: [extra], model_input_keys: {shift: x}",
                             "learned_range"),
                     "{type: direct, key: loss, weight: 1}, v: {type: direct, key: vb, weight: 1}",
                     "logger: {visuals: [start, extra]}\n"));
  run.train();
  const auto lines = run.metrics();
  CHECK(lines.back()["train/train_op/loss_v"].is_number());
  CHECK(std::filesystem::exists(run.root() + "/train/train/log_op/start_0000001.png"));
  CHECK(std::filesystem::exists(run.root() + "/train/train/log_op/extra_0000001.png"));
}

TEST_CASE("with causal_mode the elements of a sequence have timesteps of their own, and a resume") {
  seen() = {};
  const std::string yaml =
      "iterator: ExtensibleTrainer\ndevice: cpu\nnum_threads: 1\nbatch_size: 4\nnum_steps: 6\n"
      "ckpt_freq: 3\nlog_freq: 1000\nseed: 3\n"
      "datasets: {train: {class: RandomTensors, size: 40, tensors: {x: [3, 5]}}}\n"
      "networks: {g: {which_model: TestDenoiser}}\n"
      "steps: {s: {training: g, optimizer_params: {lr: 0.01}, injectors: {d: {type: "
      "gaussian_diffusion, in: x, generator: g, out: loss, causal_mode: true, causal_slope_range: "
      "[2, 2], beta_schedule: {schedule_name: linear, num_diffusion_timesteps: 1000}, "
      "diffusion_args: {model_mean_type: epsilon, model_var_type: fixed_small}}}, losses: {l: "
      "{type: direct, key: loss, weight: 1}}}}\n";
  TestRun whole(yaml);
  whole.train();
  for (const at::Tensor& timesteps : seen().timesteps) {
    REQUIRE(timesteps.sizes() == at::IntArrayRef({4, 1, 5}));
    const at::Tensor ahead = timesteps.slice(2, 1) - timesteps.slice(2, 0, 4);
    CHECK(ahead.le(2).all().item<bool>());  // less at both ends
    CHECK(ahead.eq(2).any().item<bool>());
  }
  CHECK(seen().timesteps.size() == 6);
  TestRun resumed(yaml, whole, 3);
  resumed.train();
  CHECK(differences(resumed.checkpoint(6), whole.checkpoint(6)) == "");
}

TEST_CASE("a network with one timestep for each example refuses those of elements") {
  const auto refused = message_of([&] {
    TestRun run(
        "iterator: ExtensibleTrainer\ndevice: cpu\nnum_threads: 1\nbatch_size: 4\nnum_steps: 1\n"
        "datasets: {train: {class: RandomTensors, size: 8, tensors: {x: [3, 16]}}}\n"
        "networks: {g: {which_model: UNetModel, image_size: 16, in_channels: 3, model_channels: 8, "
        "out_channels: 3, num_res_blocks: 1, attention_resolutions: [], channel_mult: [1], dims: "
        "1}}\n"
        "steps: {s: {training: g, optimizer_params: {lr: 0.01}, injectors: {d: {type: "
        "gaussian_diffusion, in: x, generator: g, out: loss, causal_mode: true, beta_schedule: "
        "{schedule_name: linear, num_diffusion_timesteps: 100}, diffusion_args: {model_mean_type: "
        "epsilon, model_var_type: fixed_small}}}, losses: {l: {type: direct, key: loss, weight: "
        "1}}}}\n");
    run.train();
  });
  CAPTURE(refused);
  CHECK(refused.find("expected timesteps [B], found int64 [4, 1, 16]: this network has one for "
                     "each example") != std::string::npos);
}

TEST_CASE("evaluations and every N-th iteration have the same timesteps, spread over the batch") {
  seen() = {};
  TestRun run(config(trained(", deterministic_timesteps_every: 3"),
                     "{type: direct, key: loss, weight: 1}", "train: {mega_batch_factor: 2}\n"));
  run.train();
  REQUIRE(seen().timesteps.size() == 12);
  const auto of_iteration = [](size_t i) {
    return at::cat({seen().timesteps[2 * i], seen().timesteps[2 * i + 1]});
  };
  const at::Tensor spread = at::arange(4, at::kLong) * 5;
  CHECK(at::equal(of_iteration(0), spread));
  CHECK(at::equal(of_iteration(3), spread));
  CHECK_FALSE(at::equal(of_iteration(1), spread));
  CHECK_FALSE(at::equal(of_iteration(1), of_iteration(2)));
}

TEST_CASE("sampling runs in evaluation mode and leaves the network in training") {
  seen() = {};
  TestRun run(config(trained() + sampled(", shape: [3, 4, 4], output_batch_size: 2, "
                                         "respaced_timestep_spacing: 5, use_ddim: true"),
                     "{type: direct, key: loss, weight: 1}", "logger: {visuals: [made]}\n"));
  run.train();
  // One call of the training, then five of sampling: 16, 12, 8, 4, 0.
  REQUIRE(seen().training.size() == 6 * 6);
  for (size_t i = 0; i < seen().training.size(); ++i) CHECK(seen().training[i] == (i % 6 == 0));
  CHECK(seen().timesteps[1][0].item<int64_t>() == 16);
  CHECK(seen().timesteps[5][1].item<int64_t>() == 0);
  CHECK(run.session.context().networks.get("g")->is_training());
  CHECK(std::filesystem::exists(run.root() + "/train/train/log_op/made_0000001.png"));
}

TEST_CASE("sampling with use_ema has the averages, and training goes on with the weights") {
  const std::string averaged = "ema: {decay: 0.9}\neval_weights: ema\nlogger: {visuals: [made]}\n";
  const std::string steps = "  t:\n    training: g\n    optimizer_params: null\n    injectors:\n" +
                            sampled(
                                ", like: x, noise_type: fixed, use_ema: true, use_ddim: true, "
                                "respaced_timestep_spacing: 2");
  TestRun run(config(trained(), "{type: direct, key: loss, weight: 1}", averaged) + steps);
  seen() = {};
  run.train();
  const State end = run.checkpoint(6);
  // The last call was a sampling in iteration 5, before the averages' last update.
  const double average = end.at("ema_g.weight").item<double>();
  const double weight = end.at("g.weight").item<double>();
  const double sampled_with = seen().weight.item<double>();
  CHECK(0.9 * sampled_with + 0.1 * weight == doctest::Approx(average).epsilon(1e-5));
  CHECK(sampled_with != doctest::Approx(weight));
  TestRun without(config(trained(), "{type: direct, key: loss, weight: 1}"));
  without.train();
  CHECK(at::equal(without.checkpoint(6).at("g.weight"), end.at("g.weight")));
}

/// The table of --check over a training whose step samples.
std::string plan_of(const std::string& more) {
  TestRun run(config(trained() + sampled(more), "{type: direct, key: loss, weight: 1}",
                     "eval: {output_state: made}\n"));
  run.session.initialize();
  return run.session.iterator().plan(run.session.context().splits.fixed_examples("train"));
}

TEST_CASE(
    "samples are as large as a key, or as the config says, and as many as there are examples") {
  CHECK(plan_of(", shape: [3, 6, 5], output_batch_size: 2").find("float32 [2, 3, 6, 5]") !=
        std::string::npos);
  CHECK(plan_of(", like: x").find("float32 [4, 3, 4, 4]") != std::string::npos);
  CHECK(plan_of(", like: x, output_batch_size: 3").find("float32 [3, 3, 4, 4]") !=
        std::string::npos);
}

TEST_CASE("errors of some channels alone can be counted") {
  const auto first_loss = [](const std::string& more) {
    TestRun run(config(trained(more)));
    run.train();
    return run.metrics().front()["train/train_op/loss_l"].get<double>();
  };
  const double all = first_loss("");
  CHECK(first_loss(", channel_restriction_low: 0, channel_restriction_high: 3") == all);
  const double one = first_loss(", channel_restriction_low: 1, channel_restriction_high: 2");
  CHECK(one > 0);
  CHECK(one < 0.7 * all);
  CHECK(first_loss(", channel_balancer_proportion: 1000") == all);  // surely every channel
  const auto too_many =
      message_of([&] { first_loss(", channel_restriction_low: 1, channel_restriction_high: 4"); });
  CHECK(too_many.find("channel_restriction_high is 4, and there are 3 channels") !=
        std::string::npos);
}

TEST_CASE("a frame is a border around each image") {
  TestRun run(config(trained() + "      f: {type: frame, in: x, out: made, width: 2}\n",
                     "{type: direct, key: loss, weight: 1}", "eval: {output_state: made}\n"));
  run.session.initialize();
  const Batch& batch = run.session.context().splits.fixed_examples("train");
  CHECK(run.session.iterator().plan(batch).find("float32 [4, 3, 8, 8]") != std::string::npos);
}

TEST_CASE("options of a diffusion that cannot be are refused, with the place and a way out") {
  const auto with = [](const std::string& more, const std::string& variance = "fixed_small",
                       const std::string& loss = "mse") {
    return config(trained(more, variance, loss));
  };
  check_message(with("", "fixed"),
                "steps/s/injectors/d/diffusion_args/model_var_type: expected fixed_small, "
                "fixed_large, learned or learned_range, found \"fixed\"");
  check_message(with("", "learned"),
                "d/out_key_vb_loss: missing: the learned variances are trained by it alone");
  check_message(with(", out_key_vb_loss: vb"),
                "d/out_key_vb_loss: there is none, as the variances are fixed (model_var_type)");
  check_message(with(", out_key_vb_loss: vb", "learned", "kl"),
                "d/out_key_vb_loss: with the loss_type kl there is one loss");
  check_message(with(", sampler_type: loss"),
                "d/sampler_type: expected uniform or loss-second-moment, found \"loss\"");
  check_message(with(", causal_slope_range: [8, 1]"),
                "d/causal_slope_range: expected two numbers of 0 or more, the smaller one first, "
                "such as [1, 8], found [8, 1]");
  const auto of_images = message_of([&] {
    TestRun run(with(", causal_mode: true"));
    run.train();
  });
  CHECK(of_images.find("causal_mode is for sequences [B, C, T], found float32 [4, 3, 4, 4]") !=
        std::string::npos);
  check_message(with(", preprocess_fn: f"), "d/preprocess_fn: names a method");
  check_message(with(", model_input_keys: {shft: x}"),
                "d/model_input_keys/shft: the network \"g\" has no such input; there are: shift; "
                "did you mean shift?");
  check_message(with(", channel_balancer_proportion: 1, channel_restriction_low: 1"),
                "d/channel_balancer_proportion: give it or channel_restriction_low");
  check_message(with(", channel_restriction_high: 1"),
                "d/channel_restriction_high: belongs to channel_restriction_low: give both");
}

TEST_CASE("options of sampling that cannot be are refused, with the place and a way out") {
  const auto with = [](const std::string& more, const std::string& args = "fixed_small") {
    return config(trained() + sampled(more, args));
  };
  check_message(with(""), "i/shape: missing: nothing says how large a sample is; give shape:");
  check_message(with(", shape: [3, 4, 4]"),
                "i/output_batch_size: missing: nothing else says how many samples");
  check_message(with(", like: x, use_ema: true"),
                "i/use_ema: the averages are those that evaluations use: add ema: {decay: 0.999} "
                "and eval_weights: ema to the config");
  check_message("ema: {decay: 0.9}\neval_weights: ema\n" + with(", like: x, use_ema: true"),
                "i/use_ema: the step trains weights beside it: say eval: true");
  check_message(with(", like: x, respaced_timestep_spacing: 12, use_ddim: true"),
                "i/respaced_timestep_spacing: no integer stride takes 12 of 20 timesteps; one "
                "takes 10 or 20");
  check_message(with(", like: x, respaced_timestep_spacing: \"1\""),
                "i/respaced_timestep_spacing: expected 2 timesteps or more, found 1");
  check_message(with(", like: x, noise_type: pink"),
                "i/noise_type: expected random, zero or fixed, found \"pink\"");
  check_message(with(", like: x, eta: 0.5"), "i/eta: is of DDIM: add use_ddim: true");
  check_message(with(", like: x", "fixed_small, conditioning_free: true"),
                "i/diffusion_args/conditioning_free: needs a network that can be called without");
}

}  // namespace extensible_diffusion_test
}  // namespace stepop
