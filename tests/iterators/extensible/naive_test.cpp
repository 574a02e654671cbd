// Random configs of steps, against an interpreter that does what the README says, word by word.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/train/iterator/splits.h"
#include "runtime/train/networks/network.h"
#include "tests/test_run.h"

namespace stepop {
namespace extensible_naive_test {

constexpr double kRate = 0.1;

/// Steps over two networks from [B, 4] to [B, 4], which are valid whatever the gates say.
class RandomSteps {
 public:
  explicit RandomSteps(unsigned seed) : random_(seed) {}

  std::string yaml() {
    std::string text = "steps:\n";
    const int steps = below(3) + 1;
    for (int i = 0; i < steps; ++i) text += step(i);
    return text;
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  std::string one_of(const std::vector<std::string>& all) {
    return all[static_cast<size_t>(below(static_cast<int>(all.size())))];
  }

  std::string step(int number) {
    const std::string trained = one_of({"a", "b"});
    const bool has_gate = below(3) == 0;
    std::string text = fmt::format("  s{}:\n    training: {}\n", number, trained);
    if (has_gate) text += fmt::format("    after: {}\n", below(3));
    if (below(3) == 0) text += "    every: 2\n";
    text += fmt::format("    optimizer: sgd\n    optimizer_params: {{lr: {}}}\n", kRate);
    std::vector<std::string> keys = keys_;
    std::string injectors = "    injectors:\n";
    // What the losses train by.
    const std::string first = fmt::format("k{}_0", number);
    injectors += fmt::format("      i0: {{type: generator, generator: {}, in: {}, out: {}}}\n",
                             trained, one_of(keys), first);
    keys.push_back(first);
    const int more = below(4);
    for (int i = 1; i <= more; ++i) {
      const std::string out = fmt::format("k{}_{}", number, i);
      const std::string in = one_of(keys);
      const int kind = below(4);
      std::string part;
      if (kind == 0) part = fmt::format("type: generator, generator: {}", one_of({"a", "b"}));
      if (kind == 1) {
        part = fmt::format("type: generator, generator: {}, grad: false", one_of({"a", "b"}));
      }
      if (kind == 2) part = fmt::format("type: normalize, shift: {}, scale: 2", below(3));
      if (kind == 3) part = fmt::format("type: direct, no_grad: {}", below(2) == 0);
      const bool is_leaf = below(4) == 0;
      if (is_leaf) part += fmt::format(", every: {}", below(3) + 1);
      injectors += fmt::format("      i{}: {{{}, in: {}, out: {}}}\n", i, part, in, out);
      if (!is_leaf) keys.push_back(out);
    }
    text += injectors + "    losses:\n";
    text += fmt::format("      l0: {{type: pix, criterion: l2, real: y, fake: {}, weight: 0.5}}\n",
                        first);
    const int losses = below(3);
    for (int i = 1; i <= losses; ++i) {
      text += fmt::format(
          "      l{}: {{type: pix, criterion: l1, real: {}, fake: {}, weight: {}, "
          "after: {}, every: {}}}\n",
          i, one_of(keys), one_of(keys), below(3) + 1, below(3), below(2) + 1);
    }
    if (!has_gate) keys_ = keys;
    return text;
  }

  std::mt19937 random_;
  std::vector<std::string> keys_ = {"x", "y"};
};

/// The same steps over networks of its own, without a plan.
class Naive {
 public:
  Naive(const Config& config, const std::map<std::string, std::shared_ptr<Network>>& networks)
      : steps_(*config.peek("steps")), networks_(networks) {}

  void run(const Batch& batch, int64_t iteration) {
    std::map<std::string, at::Tensor> state = {{"x", batch["x"]}, {"y", batch["y"]}};
    for (const auto& [name, step] : steps_.as_map()) {
      if (iteration < number(step, "after", 0)) continue;
      const bool trains = iteration % number(step, "every", 1) == 0;
      run_step(step, state, iteration, trains);
      for (auto& [key, tensor] : state) tensor = tensor.detach();
    }
  }

 private:
  static int64_t number(const Value& part, const char* key, int64_t fallback) {
    const Value* found = part.find(key);
    return found == nullptr ? fallback : found->as_int();
  }
  static std::string text(const Value& part, const char* key) { return part.find(key)->as_text(); }
  static bool is_on(const Value& part, int64_t iteration) {
    return iteration >= number(part, "after", 0) && iteration % number(part, "every", 1) == 0;
  }

  void run_step(const Value& step, std::map<std::string, at::Tensor>& state, int64_t iteration,
                bool trains) {
    for (const auto& [name, part] : step.find("injectors")->as_map()) {
      if (!is_on(part, iteration)) continue;
      const at::Tensor in = state.at(text(part, "in"));
      const std::string type = text(part, "type");
      at::Tensor out;
      if (type == "generator") {
        out = networks_.at(text(part, "generator"))->forward(in);
        if (part.find("grad") != nullptr) out = out.detach();
      } else if (type == "normalize") {
        out = (in - static_cast<double>(number(part, "shift", 0))) /
              static_cast<double>(number(part, "scale", 1));
      } else {
        out = in;
      }
      state[text(part, "out")] = out;
    }
    at::Tensor total;
    for (const auto& [name, part] : step.find("losses")->as_map()) {
      if (!is_on(part, iteration)) continue;
      const at::Tensor real = state.at(text(part, "real"));
      const at::Tensor fake = state.at(text(part, "fake"));
      const at::Tensor loss =
          text(part, "criterion") == "l2" ? at::mse_loss(fake, real) : at::l1_loss(fake, real);
      const Value& weight = *part.find("weight");
      const at::Tensor weighted =
          loss * (weight.is_int() ? static_cast<double>(weight.as_int()) : weight.as_float());
      total = total.defined() ? total + weighted : weighted;
    }
    if (!trains) return;
    const auto parameters = networks_.at(text(step, "training"))->parameters();
    const auto gradients =
        torch::autograd::grad({total}, parameters, {}, /*retain_graph=*/std::nullopt,
                              /*create_graph=*/false, /*allow_unused=*/true);
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (gradients[i].defined()) parameters[i].sub_(gradients[i] * kRate);
    }
  }

  Value steps_;
  std::map<std::string, std::shared_ptr<Network>> networks_;
};

std::shared_ptr<Network> copy_of(const torch::nn::Module& network, const Config& config,
                                 const std::string& name) {
  auto copy = std::dynamic_pointer_cast<Network>(models().build(config, "networks/" + name));
  load_tensors(name, tensors_of(*copy), tensors_of(network));
  return copy;
}

TEST_CASE("random steps change weights as the interpreter does") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const std::string steps = RandomSteps(seed).yaml();
    const auto trainable = [&](const std::string& name) -> std::string {
      return steps.find("training: " + name) == std::string::npos ? "trainable: false, " : "";
    };
    const std::string text =
        "iterator: ExtensibleTrainer\ndevice: cpu\nnum_threads: 1\nbatch_size: 4\nnum_steps: "
        "4\nlog_freq: 1000\n"
        "samplers: {train: sequential}\nn_data_processes: 0\n"
        "datasets: {train: {class: RandomTensors, size: 16, tensors: {x: [4], y: [4]}}}\n"
        "networks:\n  a: {" +
        trainable("a") + "class: MLP, inputs: 4, hidden: [5], classes: 4}\n  b: {" +
        trainable("b") + "class: MLP, inputs: 4, hidden: [3], classes: 4}\n" + steps;
    CAPTURE(text);
    TestRun run(text);
    const Context& context = run.session.context();
    std::map<std::string, std::shared_ptr<Network>> networks;
    for (const char* name : {"a", "b"}) {
      networks[name] = copy_of(*context.networks.get(name), run.session.config(), name);
    }
    Naive naive(run.session.config(), networks);
    std::vector<Batch> batches;
    for (int64_t i = 0; i < 4; ++i) {
      batches.push_back(context.splits.batch("train", context.splits.order("train"), i));
    }
    run.session.check();
    run.train();
    for (int64_t i = 0; i < 4; ++i) naive.run(batches[static_cast<size_t>(i)], i);
    for (const char* name : {"a", "b"}) {
      const State expected = tensors_of(*networks[name]);
      for (const auto& [tensor, value] : tensors_of(*context.networks.get(name))) {
        CAPTURE(name + ("." + tensor));
        CHECK(at::allclose(value, expected.at(tensor), 1e-4, 1e-6));
      }
    }
  }
}

}  // namespace extensible_naive_test
}  // namespace stepop
