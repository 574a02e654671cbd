// Injectors by themselves.
#include <ATen/Context.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/replication_pad2d.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/train/networks/autocast.h"
#include "runtime/train/networks/network.h"
#include "tests/iterators/extensible/workbench.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace extensible_injectors_test {

using namespace extensible;

at::Tensor numbers(at::IntArrayRef shape) {
  int64_t count = 1;
  for (const int64_t length : shape) count *= length;
  return at::arange(count, at::kFloat).reshape(shape);
}

TEST_CASE("injectors that move values about") {
  Workbench bench;
  const at::Tensor x = numbers({2, 3, 4, 4});
  bench.set("x", x);
  bench.set("y", x * 10);
  const auto made = [&](const std::string& yaml) {
    bench.inject(yaml);
    return bench.at("out");
  };
  CHECK(at::equal(made("{type: direct, in: x, out: out}"), x));
  CHECK(at::equal(made("{type: grey, in: x, out: out}"), x.mean(1, true).expand({2, 3, 4, 4})));
  CHECK(
      at::equal(made("{type: concatenate, in: [x, y], out: out, dim: 1}").narrow(1, 3, 3), x * 10));
  CHECK(at::equal(made("{type: batch_rotate, in: x, out: out}")[0], x[1]));
  CHECK(at::equal(made("{type: batch_rotate, in: x, out: out}")[1], x[0]));
  CHECK(at::equal(made("{type: normalize, in: x, out: out, shift: 2, scale: 4}"), (x - 2) / 4));
  CHECK(at::equal(made("{type: denormalize, in: x, out: out, shift: 2, scale: 4}"), x * 4 + 2));
  CHECK(at::equal(made("{type: channel_clip, in: x, out: out, channel_low: 1, channel_high: 3}"),
                  x.narrow(1, 1, 2)));
  CHECK(at::equal(made("{type: constant, constant_type: zeroes, like: x, out: out}"), x * 0));
  CHECK(at::equal(made("{type: margin_removal, in: x, out: out, margin: 1}"),
                  x.narrow(2, 1, 2).narrow(3, 1, 2)));
  bench.inject("{type: indices_extractor, in: x, out: [a, b, c], dim: 1}");
  CHECK(at::equal(bench.at("b"), x.select(1, 1)));
  CHECK(made("{type: pad, in: x, out: out, multiple: 4}").sizes() == x.sizes());
  const at::Tensor padded = made("{type: pad, in: x, out: out, multiple: 5}");
  CHECK(padded.sizes() == at::IntArrayRef{2, 3, 4, 5});
  CHECK(padded.select(-1, 4).abs().max().item<double>() == 0);
  bench.set("z", numbers({2, 1, 3}));
  CHECK(made("{type: squeeze, in: z, out: out, dim: 1}").sizes() == at::IntArrayRef{2, 3});
  CHECK(message_of([&] { made("{type: squeeze, in: x, out: out, dim: 1}"); }) ==
        "expected one element in dimension 1, found float32 [2, 3, 4, 4]");
}

TEST_CASE("interpolate, image_patch and sr_diffs") {
  Workbench bench;
  const at::Tensor x = numbers({1, 3, 4, 4});
  bench.set("x", x);
  bench.set("y", x + 0.5);
  bench.inject("{type: interpolate, in: x, out: out, scale_factor: 2, mode: nearest}");
  CHECK(bench.at("out").sizes() == at::IntArrayRef{1, 3, 8, 8});
  CHECK(bench.at("out")[0][0][3][5].item<double>() == 6);
  bench.inject("{type: interpolate, in: x, out: out, size: 2, mode: area}");
  CHECK(bench.at("out")[0][0][0][0].item<double>() == 2.5);
  // torch.nn.functional.interpolate(x, scale_factor=2, mode="bicubic")[0, 0, 1, :3]
  bench.inject("{type: interpolate, in: x, out: out, scale_factor: 2, mode: bicubic}");
  CHECK(at::allclose(bench.at("out")[0][0][1].narrow(0, 0, 3),
                     at::tensor({0.66015625, 0.95703125, 1.43359375}, at::kFloat), 1e-5, 1e-5));
  // The same with antialias=True, whose cubic is Pillow's, also where nothing is reduced.
  bench.inject(
      "{type: interpolate, in: x, out: out, scale_factor: 2, mode: bicubic, antialias: true}");
  CHECK(at::allclose(bench.at("out")[0][0][1].narrow(0, 0, 3),
                     at::tensor({0.58329755, 0.83941615, 1.38145649}, at::kFloat), 1e-4, 1e-4));
  CHECK(message_of([&] {
          bench.inject("{type: interpolate, in: x, out: out, size: 2, antialias: true}");
        }).find("antialias: expected with the modes bilinear and bicubic alone") !=
        std::string::npos);
  bench.inject("{type: image_patch, in: x, out: p, patch_size: 3}");
  CHECK(at::equal(bench.at("p"), x.narrow(2, 0, 3).narrow(3, 0, 3)));
  CHECK(at::equal(bench.at("p_bottom_left"), x.narrow(2, 1, 3).narrow(3, 0, 3)));
  bench.inject("{type: image_patch, in: x, out: p, patch_size: 3}", 0, /*is_training=*/false);
  CHECK(at::equal(bench.at("p_top_right"), x));
  bench.inject(
      "{type: sr_diffs, mode: produce_diff, lq: x, hq: y, diff: d, out: out, include_combined: "
      "true}");
  CHECK(bench.at("out").size(1) == 9);
  CHECK(at::allclose(bench.at("d"), at::full({1, 3, 4, 4}, 0.5)));
  bench.inject("{type: sr_diffs, mode: recombine, lq: x, hq: y, out: out}");
  CHECK(at::equal(bench.at("out"), x + (x + 0.5)));
}

TEST_CASE("a dimension is folded into the batch and comes back; for_each goes over it") {
  Workbench bench;
  const at::Tensor x = numbers({2, 5, 3, 4});
  bench.set("x", x);
  for (const int dim : {1, 2, 3}) {
    bench.inject("{type: decompose_dimension, in: x, out: flat, dim: " + std::to_string(dim) + "}");
    const at::Tensor flat = bench.at("flat");
    CHECK(flat.size(0) == 2 * x.size(dim));
    CHECK(at::equal(flat[0], x.select(dim, 0)[0]));
    bench.set("flat", flat);
    bench.set("flat_reverse_shape", bench.item("flat_reverse_shape"));
    bench.set("flat_reverse_permute", bench.item("flat_reverse_permute"));
    bench.inject(
        "{type: recompose_dimension, in: flat, out: back, reverse_shape: flat_reverse_shape, "
        "reverse_permute: flat_reverse_permute}");
    CHECK(at::equal(bench.at("back"), x));
  }
  bench.inject("{type: for_each, subtype: normalize, in: x, out: each, shift: 1, scale: 2}");
  CHECK(at::equal(bench.at("each"), (x - 1) / 2));
  CHECK(message_of([&] {
          bench.inject("{type: for_each, subtype: normalize, in: x, out: e, shift: 1, scal: 2}");
        }).find("scal") != std::string::npos);
}

TEST_CASE("numbers that depend on the iteration") {
  Workbench bench;
  const auto at_iteration = [&](const std::string& scheduler, int64_t iteration) {
    bench.inject("{type: scheduled_scalar, out: w, scheduler: " + scheduler + "}", iteration);
    return std::get<double>(bench.item("w"));
  };
  CHECK(at_iteration("{type: fixed, weight: 0.5}", 7) == 0.5);
  const std::string decay =
      "{type: linear_decay, initial_weight: 10, steps: 100, lower_bound: 2, start_step: 10}";
  CHECK(at_iteration(decay, 5) == 10);
  CHECK(at_iteration(decay, 60) == doctest::Approx(6));
  CHECK(at_iteration(decay, 1000) == doctest::Approx(2));
  const std::string wave =
      "{type: sinusoidal, upper_weight: 3, lower_weight: 1, period: 8, start_step: 2}";
  CHECK(at_iteration(wave, 2) == doctest::Approx(3));
  CHECK(at_iteration(wave, 4) == doctest::Approx(2));
  CHECK(at_iteration(wave, 6) == doctest::Approx(1));
}

TEST_CASE("injectors that draw random numbers") {
  Workbench bench;
  bench.set("x", at::ones({64, 3, 8, 8}));
  bench.set("y", at::ones({64, 3, 8, 8}) * 2);
  bench.inject("{type: add_noise, in: x, out: out, scale: 0.5, mode: uniform}");
  const at::Tensor noise = bench.at("out") - 1;
  CHECK(noise.min().item<double>() >= 0);
  CHECK(noise.max().item<double>() < 0.5);
  CHECK(noise.mean().item<double>() == doctest::Approx(0.25).epsilon(0.05));
  bench.set("s", 2.0);
  bench.inject("{type: add_noise, in: x, out: out, scale: s}");
  CHECK((bench.at("out") - 1).std().item<double>() == doctest::Approx(2).epsilon(0.05));
  bench.inject("{type: mix_and_label, in: [x, y], out: out, out_labels: l}");
  const at::Tensor labels = bench.at("l");
  CHECK(
      at::equal(bench.at("out").select(1, 0).select(1, 0).select(1, 0), 1 + labels.to(at::kFloat)));
  CHECK(labels.sum().item<int64_t>() > 10);
  CHECK(labels.sum().item<int64_t>() < 54);
  bench.inject("{type: noise, in: x, out: out, shape: [5, 2]}");
  CHECK(bench.at("out").sizes() == at::IntArrayRef{64, 5, 2});
  bench.inject("{type: stylegan2_noise, in: x, out: out, mix_probability: 1, latent_dim: 16}");
  CHECK(std::get<std::vector<at::Tensor>>(bench.item("out")).size() == 2);
  bench.inject("{type: stylegan2_noise, in: x, out: out, mix_probability: 0, latent_dim: 16}");
  CHECK(std::get<std::vector<at::Tensor>>(bench.item("out")).front().sizes() ==
        at::IntArrayRef{64, 16});
  bench.inject("{type: random_crop, in: x, out: out, dim_in: 8, dim_out: 4}");
  CHECK(bench.at("out").sizes() == at::IntArrayRef{64, 3, 4, 4});
  const at::Tensor pixels = numbers({64, 1, 5, 5});
  bench.set("p", pixels);
  bench.inject("{type: random_shift, in: p, out: out, random_shift_max: 2}");
  const at::Tensor moved = bench.at("out");
  const at::Tensor padded = at::replication_pad2d(pixels, {2, 2, 2, 2});
  std::set<int64_t> shifts;  // 5 rows + columns, from -12 to 12
  for (int64_t i = 0; i < 64; ++i) {
    const at::Tensor middle = moved[i][0][2][2] - pixels[i][0][2][2];
    const int64_t shift = middle.item<int64_t>();
    const int64_t rows = (shift + 12) / 5 - 2;
    shifts.insert(shift);
    CHECK(at::equal(moved[i], padded[i].narrow(1, 2 + rows, 5).narrow(2, 2 + shift - 5 * rows, 5)));
  }
  CHECK(shifts.size() > 15);
  bench.inject("{type: margin_removal, in: x, out: out, margin: 2, random_shift_max: 2}");
  CHECK(bench.at("out").sizes() == at::IntArrayRef{64, 3, 4, 4});
}

TEST_CASE("networks are called with their inputs, with a graph or without") {
  Workbench bench;
  bench.set("x", at::ones({2, 3, 4, 4}));
  bench.inject("{type: generator, generator: a, in: x, out: out}");
  CHECK(bench.at("out").sizes() == at::IntArrayRef{2, 3, 8, 8});
  CHECK(bench.at("out").requires_grad());
  const auto network = bench.run().session.context().networks.get("a");
  network->train();
  bench.inject("{type: generator, generator: a, in: x, out: out, grad: false}");
  CHECK_FALSE(bench.at("out").requires_grad());
  CHECK(network->is_training());
  bench.inject("{type: discriminator, discriminator: d, in: x, out: out}");
  CHECK(bench.at("out").sizes() == at::IntArrayRef{2, 1});
  CHECK(message_of([&] {
          bench.inject("{type: generator, generator: a, in: [x, x], out: out}");
        }).find("the network \"a\" has one input, found 2") != std::string::npos);
}

/// a + 10 b + 100 c + 1000 d; what is left out is 0.
class SumOfInputs : public MultiNetwork {
 public:
  explicit SumOfInputs(const Config&) {}
  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override {
    at::Tensor sum = at::zeros({});
    double factor = 1;
    for (const auto& input : inputs) {
      if (input.defined()) sum = sum + factor * input;
      factor *= 10;
    }
    return {sum};
  }
  std::vector<std::string> input_names() const override { return {"a", "b", "c", "d"}; }
};
STEPOP_REGISTER_MODEL(SumOfInputs, {"For tests."});

TEST_CASE("a network has lists within lists as inputs, and further ones by their names") {
  const TestRun run(R"(
iterator: ExtensibleTrainer
num_steps: 1
batch_size: 2
datasets: {train: {class: RandomTensors, tensors: {x: [4]}}}
networks: {a: {class: MLP, inputs: 4}, m: {class: SumOfInputs, trainable: false}}
steps:
  s:
    training: a
    optimizer_params: {lr: 1}
    injectors: {i: {type: generator, generator: a, in: x, out: o}}
    losses: {l: {type: direct, key: o, weight: 1}}
)");
  const auto made = [&](const std::string& rest) {
    Keys keys;
    Ports ports(run.session.context(), keys, "a");
    const Config params = test_config("{type: generator, generator: m, out: out, " + rest + "}");
    const auto injector = make_injector(params, ports);
    StepState state(keys);
    state.clear();
    for (int i = 0; i < 2; ++i) {
      const Slot slot = keys.find(i == 0 ? "x" : "y");
      if (slot) state.set(slot, at::full({}, i + 1.0));
    }
    injector->run(state, {0, true});
    CHECK(params.unknown_keys() == "");
    return state.tensor(keys.find("out")).item<double>();
  };
  CHECK(made("in: [x, [y, [3, None]]]") == 1 + 20 + 300);
  CHECK(made("in: [x, [y, [3, true]]]") == 1 + 20 + 300 + 1000);
  CHECK(made("in: x, args: {c: 0.5, b: true}") == 1 + 10 + 50);
  CHECK(made("in: [x, None], args: {b: 2, d: null}") == 1 + 20);
  CHECK(message_of([&] {
          made("in: x, args: {e: 1}");
        }).ends_with("args/e: the network has no input of this name; there are: a, b, c, d"));
  CHECK(message_of([&] {
          made("in: [x, y], args: {b: 1}");
        }).ends_with("args/b: is input 1 of the network, which `in` gives"));
  CHECK(message_of([&] { made("in: x, args: {b: x}"); })
            .ends_with("args/b: expected a number, true or false, found \"x\"; a tensor of the "
                       "state is named by `in`"));
  Workbench bench;
  CHECK(message_of([&] {
          bench.inject("{type: generator, generator: a, in: x, out: out, args: {b: 1}}");
        }).ends_with("args/b: the network has no input of this name; there are: none with a name"));
}

TEST_CASE("fp16: false computes a network in float32 where the training has another precision") {
  Workbench bench;
  const AutocastGuard guard(Precision::kBfloat16, at::kCPU);
  bench.set("x", at::ones({2, 3, 4, 4}).to(at::kBFloat16));
  bench.inject("{type: generator, generator: a, in: x, out: out}");
  CHECK((bench.at("out").scalar_type() == at::kBFloat16));
  bench.inject("{type: generator, generator: a, in: x, out: out, fp16: false}");
  CHECK((bench.at("out").scalar_type() == at::kFloat));
}

}  // namespace extensible_injectors_test
}  // namespace stepop
