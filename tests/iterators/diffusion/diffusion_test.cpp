// Gaussian diffusion, against values that the Python of guided-diffusion gave
// (tests/data/diffusion).
#include "iterators/diffusion/gaussian_diffusion.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "iterators/diffusion/beta_schedule.h"
#include "iterators/diffusion/causal_timesteps.h"
#include "iterators/diffusion/options.h"
#include "iterators/diffusion/sampling.h"
#include "iterators/diffusion/timestep_sampler.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/train/networks/generators.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/tensor_values.h"
#include "tests/test_run.h"

namespace stepop {
namespace diffusion_test {

using namespace diffusion;

const State& stored() {
  static const State tensors =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/diffusion/diffusion.safetensors").tensors;
  return tensors;
}

/// `tables/linear/100/100/betas` -> its parts.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  std::istringstream text(name);
  for (std::string part; std::getline(text, part, '/');) parts.push_back(part);
  return parts;
}

/// float64 values that were computed in the same way.
bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && at::allclose(a, b, /*rtol=*/1e-12, /*atol=*/0);
}

bool close(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && at::allclose(a, b, /*rtol=*/1e-5, /*atol=*/2e-5);
}

DiffusionOptions options_of(const std::string& schedule, int64_t timesteps,
                            const std::string& spacing) {
  return {.betas = beta_schedule(schedule, timesteps),
          .taken = spaced_timesteps(timesteps, spacing)};
}

/// The same by the names that a config has.
DiffusionOptions options_named(const std::string& schedule, int64_t timesteps,
                               const std::string& mean, const std::string& variance,
                               const std::string& loss, bool rescales = false) {
  return read_options(test_config(
      fmt::format("beta_schedule: {{schedule_name: {}, num_diffusion_timesteps: {}}}\n"
                  "diffusion_args: {{model_mean_type: {}, model_var_type: {}, loss_type: {}, "
                  "rescale_timesteps: {}}}\n",
                  schedule, timesteps, mean, variance, loss, rescales)));
}

const std::vector<std::string> kMeans = {"epsilon", "previous_x", "start_x"};
const std::vector<std::string> kVariances = {"fixed_small", "fixed_large", "learned",
                                             "learned_range"};

TEST_CASE("schedules, timesteps that are taken and tables are those of guided-diffusion") {
  int compared = 0;
  for (const auto& [name, expected] : stored()) {
    const auto parts = parts_of(name);
    CAPTURE(name);
    if (parts[0] == "betas") {
      CHECK(same(at::tensor(beta_schedule(parts[1], std::stoll(parts[2])), at::kDouble), expected));
    } else if (parts[0] == "spacing") {
      CHECK((spaced_timesteps(std::stoll(parts[1]), parts[2]) == values_of<int64_t>(expected)));
    } else if (parts[0] == "tables") {
      const GaussianDiffusion made(options_of(parts[1], std::stoll(parts[2]), parts[3]));
      const DiffusionTables& tables = made.tables();
      const std::map<std::string, at::Tensor> by_name = {
          {"betas", tables.betas},
          {"signal", tables.signal},
          {"signal_before", tables.signal_before},
          {"sqrt_signal", tables.sqrt_signal},
          {"sqrt_noise", tables.sqrt_noise},
          {"sqrt_recip", tables.sqrt_recip},
          {"sqrt_recip_less", tables.sqrt_recip_less},
          {"posterior_variance", tables.posterior_variance},
          {"posterior_log_variance", tables.posterior_log_variance},
          {"posterior_of_start", tables.posterior_of_start},
          {"posterior_of_now", tables.posterior_of_now}};
      CHECK(same(by_name.at(parts[4]), expected));
    } else {
      continue;
    }
    ++compared;
  }
  CHECK(compared == 4 + 8 + 3 * 11);
}

TEST_CASE(
    "losses, their gradients and predictions are those of guided-diffusion, in all variants") {
  // As images, to see that each example has its own timestep whatever the dimensions.
  const auto image = [](const at::Tensor& x) { return x.unflatten(2, {2, 3}); };
  const at::Tensor start = image(stored().at("losses/start"));
  const at::Tensor noise = image(stored().at("losses/noise"));
  const at::Tensor& t = stored().at("losses/t");
  for (const auto& mean : kMeans) {
    for (const auto& variance : kVariances) {
      const int64_t channels = variance.starts_with("learned") ? 6 : 3;
      const at::Tensor output = image(stored().at("losses/output").narrow(1, 0, channels));
      for (const std::string loss : {"mse", "rescaled_mse", "kl", "rescaled_kl"}) {
        const std::string where = fmt::format("losses/{}/{}/{}/", mean, variance, loss);
        CAPTURE(where);
        const GaussianDiffusion made(options_named("linear", 50, mean, variance, loss));
        const at::Tensor given = output.clone().requires_grad_(true);
        const auto losses = made.losses(
            [&](const at::Tensor& x, const at::Tensor& timesteps) {
              CHECK(close(x, image(stored().at("losses/x"))));
              CHECK(at::equal(timesteps, t));
              return given;
            },
            start, t, noise);
        CHECK(close(losses.loss, stored().at(where + "loss")));
        CHECK(losses.mse.defined() == (loss == "mse" || loss == "rescaled_mse"));
        if (losses.mse.defined()) {
          CHECK(close(losses.mse, stored().at(where + "mse")));
          CHECK(close(losses.start, image(stored().at(where + "start"))));
        }
        CHECK(losses.vb.defined() == stored().contains(where + "vb"));
        if (losses.vb.defined()) CHECK(close(losses.vb, stored().at(where + "vb")));
        const auto gradient = torch::autograd::grad({losses.loss.sum()}, {given});
        const at::Tensor expected = image(stored().at(where + "gradient"));
        CHECK(at::allclose(gradient.front(), expected, 1e-4, 1e-4));
      }
      const GaussianDiffusion made(options_named("linear", 50, mean, variance, "mse"));
      const std::string where = fmt::format("predicted/{}/{}/", mean, variance);
      CAPTURE(where);
      const auto made_of = made.predict(output, image(stored().at("losses/x")), t, /*clips=*/true);
      CHECK(close(made_of.mean, image(stored().at(where + "mean"))));
      CHECK(close(made_of.log_variance, image(stored().at(where + "log_variance"))));
      CHECK(close(made_of.start, image(stored().at(where + "start"))));
    }
  }
}

TEST_CASE("timesteps of the elements of a sequence, and losses with them, are DL-Art-School's") {
  const at::Tensor& start = stored().at("losses/start");
  int compared = 0;
  for (const auto& [name, expected] : stored()) {
    const auto parts = parts_of(name);
    if (parts[0] != "causal" || parts.size() != 6 || parts[5] != "loss") continue;
    CAPTURE(name);
    const std::string where = fmt::format("causal/{}/{}/", parts[1], parts[2]);
    const auto causal = causal_timesteps(stored().at("losses/t"), start.size(2), 50,
                                         std::stod(parts[1]), std::stod(parts[2]));
    CHECK(at::equal(causal.t, stored().at(where + "timesteps")));
    const at::Tensor& t = stored().at(where + "t");
    CHECK(at::equal(causal.is_open.squeeze(1), t.ne(-1).logical_and(t.ne(50))));
    const GaussianDiffusion made(options_named("linear", 50, parts[3], parts[4], "mse"));
    const int64_t channels = made.learns_variance() ? 6 : 3;
    const at::Tensor given =
        stored().at("losses/output").narrow(1, 0, channels).clone().requires_grad_(true);
    const auto losses = made.losses(
        [&](const at::Tensor& x, const at::Tensor& timesteps) {
          CHECK(close(x, stored().at(where + "x")));
          CHECK(at::equal(timesteps, causal.t));
          return given;
        },
        start, causal.t, stored().at("losses/noise"),
        [&](const at::Tensor& errors) { return errors * causal.is_open; });
    CHECK(close(losses.loss, expected));
    const auto gradient = torch::autograd::grad({losses.loss.sum()}, {given});
    CHECK(at::allclose(gradient.front(),
                       stored().at(where + parts[3] + "/" + parts[4] + "/gradient"), 1e-4, 1e-4));
    ++compared;
  }
  CHECK(compared == 9);
}

TEST_CASE("samples by DDPM and DDIM are those of guided-diffusion, in all variants") {
  const at::Tensor& noise = stored().at("samples/noise");
  int compared = 0;
  for (const auto& [name, expected] : stored()) {
    const auto parts = parts_of(name);
    if (parts[0] != "samples" || parts.size() != 6) continue;
    CAPTURE(name);
    auto options = options_named("cosine", 50, parts[1], parts[2], "mse", parts[5] == "1");
    options.taken = spaced_timesteps(50, parts[4]);
    const GaussianDiffusion made(options);
    const auto model = [&](const at::Tensor& x, const at::Tensor& timesteps) {
      const at::Tensor shift = 0.1 * (timesteps.to(at::kFloat) / 10).cos().view({-1, 1, 1});
      const at::Tensor mean = 0.5 * (0.7 * x).tanh() + shift;
      return made.learns_variance() ? at::cat({mean, 0.9 * (3 * x).sin()}, 1) : mean;
    };
    seed_generators(7, c10::kCPU);
    const at::Tensor samples = sample(
        made, model, noise, {.use_ddim = parts[3] != "ddpm", .eta = parts[3] == "eta" ? 0.5 : 0.0});
    CHECK(samples.sizes() == expected.sizes());
    CHECK(at::allclose(samples, expected, 1e-4, 1e-4));
    CHECK_FALSE(samples.requires_grad());
    ++compared;
  }
  CHECK(compared == 3 * 4 * 4);
}

TEST_CASE("timesteps with large losses are drawn more often, as guided-diffusion draws them") {
  LossSecondMomentSampler sampler(5);
  const at::Tensor& timesteps = stored().at("sampler/timesteps");
  const at::Tensor& losses = stored().at("sampler/losses");
  const at::Tensor& expected = stored().at("sampler/probabilities");
  for (int64_t i = 0; i < timesteps.size(0); ++i) {
    sampler.update(timesteps.narrow(0, i, 1), losses.narrow(0, i, 1));
    CHECK(same(sampler.probabilities(), expected[i]));
    CHECK(sampler.is_warmed_up() == (i >= 49));
  }
  LossSecondMomentSampler restored(5);
  restored.load_state(sampler.state());
  CHECK(at::equal(restored.probabilities(), sampler.probabilities()));
  CHECK(message_of([&] { LossSecondMomentSampler(6).load_state(sampler.state()); }) ==
        "the timestep sampler of the checkpoint is not one of 6 timesteps");
  // The weights make up for it: the mean is that of all timesteps alike.
  seed_generators(1, c10::kCPU);
  const auto drawn = sampler.draw(40000);
  const at::Tensor of_each = at::tensor({1.0, 2.0, 3.0, 4.0, 50.0}, at::kFloat);
  const double mean =
      (of_each.index_select(0, drawn.timesteps) * drawn.weights).mean().item<double>();
  CHECK(mean == doctest::Approx(12).epsilon(0.02));
}

TEST_CASE("a loss that is not finite is not remembered") {
  LossSecondMomentSampler sampler(2);
  sampler.update(at::tensor({0, 1}, at::kLong), at::tensor({NAN, 2.0F}));
  const State state = sampler.state();
  CHECK(at::equal(state.at("counts"), at::tensor({0, 1}, at::kLong)));
}

TEST_CASE("timesteps that are always the same are spread evenly") {
  for (const auto& [steps, range] :
       {std::pair<int64_t, int64_t>{4000, 2048}, {1000, 64}, {50, 7}}) {
    const at::Tensor& expected = stored().at(fmt::format("sampler/spread/{}/{}", steps, range));
    CHECK(at::equal(spread_timesteps(0, range, range, steps), expected));
    CHECK(at::equal(spread_timesteps(3, 4, range, steps), expected.narrow(0, 3, 4)));
  }
  CHECK((values_of<int64_t>(spread_timesteps(6, 3, 7, 50)) == std::vector<int64_t>{42, 0, 7}));
}

TEST_CASE("schedules and timesteps that cannot be are refused") {
  const auto message = [](const auto& call) { return message_of(call); };
  CHECK(message([] { beta_schedule("cubic", 100); }) ==
        "expected linear or cosine, found \"cubic\"");
  CHECK(message([] { beta_schedule("linear", 20); }) ==
        "the schedule linear has 21 timesteps or more, found 20; cosine can have fewer");
  CHECK(message([] { spaced_timesteps(100, "ddim30"); }) ==
        "no integer stride takes 30 of 100 timesteps; one takes 25 or 34");
  CHECK(message([] { spaced_timesteps(100, "10,60"); }) ==
        "cannot take 60 of a section of 50 timesteps (\"10,60\")");
  CHECK(message([] { spaced_timesteps(100, "10,x"); }) ==
        "expected a number of timesteps such as 50, several such as \"10,15,20\", or \"ddim50\", "
        "found \"10,x\"");
  const GaussianDiffusion made(options_named("linear", 50, "epsilon", "learned", "mse"));
  const at::Tensor x = at::randn({2, 3, 4, 4});
  CHECK(message([&] {
          made.call([](const at::Tensor& of, const at::Tensor&) { return of; }, x,
                    at::tensor({0, 1}, at::kLong));
        }) ==
        "the network makes [2, 3, 4, 4] of [2, 3, 4, 4], expected [2, 6, 4, 4]: twice as many "
        "channels, as it also gives the variances");
}

}  // namespace diffusion_test
}  // namespace stepop
