// Injectors that draw random numbers.
#include <ATen/ops/rand.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/stack.h>

#include <string>
#include <variant>
#include <vector>

#include "iterators/extensible/step/injector.h"

namespace stepop::extensible {
namespace {

/// Adds noise: normal, or uniform in [0, scale).
class AddNoise : public Injector {
 public:
  struct Params : InOut {
    std::string mode = "normal";
    Port scale_key;
    double scale = 1;

    void declare(Parameters& p) {
      InOut::declare(p);
      p.add("mode", mode, "or uniform, in [0, scale)", one_of({"normal", "uniform"}));
      const Config* config =
          p.describe({"scale", "1", "a number, or a key", false, {.kind = "number | text"}});
      if (config == nullptr || !config->has("scale")) return;
      if (config->peek("scale")->is_text()) {
        scale_key = ParameterOf<Port>::read(*config, "scale", {});
      } else {
        scale = config->get<double>("scale");
      }
    }
  };

  AddNoise(const Params& params, Ports& ports)
      : in_(ports.reads(params.in)),
        out_(ports.writes(params.out)),
        scale_key_(ports.reads(params.scale_key)),
        scale_(params.scale),
        is_normal_(params.mode == "normal") {}

  void run(StepState& state, const Iteration&) override {
    const at::Tensor& x = state.tensor(in_);
    const at::Tensor noise = is_normal_ ? at::randn_like(x) : at::rand_like(x);
    if (!scale_key_) {
      state.set(out_, x + noise * scale_);
    } else if (std::holds_alternative<double>(state.item(scale_key_))) {
      state.set(out_, x + noise * state.number(scale_key_));
    } else {
      state.set(out_, x + noise * state.tensor(scale_key_));
    }
  }

 private:
  Slot in_, out_;
  Slot scale_key_;
  double scale_;
  bool is_normal_;
};

/// Picks one of several inputs for each example, and labels which.
class MixAndLabel : public Injector {
 public:
  struct Params {
    std::vector<Port> in;
    Port out;
    Port out_labels;

    void declare(Parameters& p) {
      p.require("in", in, "a list of keys");
      p.require("out", out, "");
      p.require("out_labels", out_labels, "");
    }
  };

  MixAndLabel(const Params& params, Ports& ports)
      : in_(ports.reads_all(params.in)),
        out_(ports.writes(params.out)),
        labels_(ports.writes(params.out_labels)) {}
  void run(StepState& state, const Iteration&) override {
    std::vector<at::Tensor> inputs;
    for (const Slot slot : in_) inputs.push_back(state.tensor(slot));
    const at::Tensor stacked = at::stack(inputs);  // [inputs, B, ...]
    const at::TensorOptions options = at::TensorOptions(at::kLong).device(stacked.device());
    const at::Tensor labels =
        at::randint(static_cast<int64_t>(in_.size()), {stacked.size(1)}, options);
    std::vector<at::Tensor> chosen;
    const at::Tensor on_host = labels.cpu();
    const auto* which = on_host.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < stacked.size(1); ++i) chosen.push_back(stacked[which[i]][i]);
    state.set(out_, at::stack(chosen));
    state.set(labels_, labels);
  }

 private:
  std::vector<Slot> in_;
  Slot out_, labels_;
};

/// One or two latent vectors of normal noise for each example, for StyleGAN 2.
class Stylegan2Noise : public Injector {
 public:
  struct Params : InOut {
    double mix_probability = 0.9;
    int64_t latent_dim = 512;

    void declare(Parameters& p) {
      InOut::declare(p, "whose batch size counts");
      p.add("mix_probability", mix_probability, "of two", at_least(0).at_most(1));
      p.add("latent_dim", latent_dim, "", at_least(1));
    }
  };

  Stylegan2Noise(const Params& params, Ports& ports)
      : in_(ports.reads(params.in)),
        out_(ports.writes(params.out)),
        mix_(params.mix_probability),
        latent_(params.latent_dim) {}
  void run(StepState& state, const Iteration&) override {
    const at::Tensor& like = state.tensor(in_);
    const auto options = at::TensorOptions(at::kFloat).device(like.device());
    const bool mixes = at::rand({1}, at::kDouble).item<double>() < mix_;
    std::vector<at::Tensor> noise;
    for (int i = 0; i < (mixes ? 2 : 1); ++i) {
      noise.push_back(at::randn({like.size(0), latent_}, options));
    }
    state.set(out_, std::move(noise));
  }

 private:
  Slot in_, out_;
  double mix_;
  int64_t latent_;
};

/// Normal noise [B, shape].
class Noise : public UnaryInjector {
 public:
  struct Params : InOut {
    std::vector<int64_t> shape;

    void declare(Parameters& p) {
      InOut::declare(p, "whose batch size counts").require("shape", shape, "of an example");
    }
  };

  Noise(const Params& params, Ports& ports) : UnaryInjector(params, ports), shape_(params.shape) {}
  at::Tensor compute(const at::Tensor& like) override {
    std::vector<int64_t> shape = {like.size(0)};
    shape.insert(shape.end(), shape_.begin(), shape_.end());
    return at::randn(shape, at::TensorOptions(at::kFloat).device(like.device()));
  }

 private:
  std::vector<int64_t> shape_;
};

STEPOP_REGISTER_INJECTOR(add_noise, AddNoise, {"Noise added."});
STEPOP_REGISTER_INJECTOR(mix_and_label, MixAndLabel,
                         {"For each example one of several inputs, and its number."});
STEPOP_REGISTER_INJECTOR(stylegan2_noise, Stylegan2Noise,
                         {"One or two latent vectors for each example."});
STEPOP_REGISTER_INJECTOR(noise, Noise, {"Normal noise."});

}  // namespace
}  // namespace stepop::extensible
