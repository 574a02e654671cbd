// Injectors over tensors of any shape, and numbers.
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "iterators/extensible/step/injector.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/when/duration.h"

namespace stepop::extensible {
namespace {

/// A number that depends on the iteration.
class ScheduledScalar : public Injector {
 public:
  ScheduledScalar(const Config& params, Ports& ports)
      : out_(ports.writes(params, "out")), scheduler_(params.at("scheduler")) {
    type_ = scheduler_.get<std::string>("type");
    if (type_ == "fixed") {
      a_ = scheduler_.get<double>("weight");
    } else if (type_ == "linear_decay") {
      a_ = scheduler_.get<double>("initial_weight");
      b_ = scheduler_.get<double>("lower_bound");
      period_ = read_length(scheduler_, "steps", 1);
      start_ = read_length_or(scheduler_, "start_step", 0, 0);
    } else if (type_ == "sinusoidal") {
      a_ = scheduler_.get<double>("upper_weight");
      b_ = scheduler_.get<double>("lower_weight");
      period_ = scheduler_.get_at_least("period", 1);
      start_ = read_length_or(scheduler_, "start_step", 0, 0);
    } else {
      throw scheduler_.error("type",
                             fmt::format("expected fixed, linear_decay or sinusoidal, found "
                                         "\"{}\"",
                                         type_));
    }
  }

  void run(StepState& state, const Iteration& iteration) override {
    state.set(out_, at(iteration.number));
  }

 private:
  double at(int64_t number) const {
    const auto since = static_cast<double>(std::max<int64_t>(number - start_, 0));
    const auto period = static_cast<double>(period_);
    if (type_ == "fixed") return a_;
    if (type_ == "linear_decay") return a_ - (a_ - b_) * std::min(since / period, 1.0);
    const double middle = (a_ + b_) / 2;
    return middle + (a_ - b_) / 2 * std::cos(2 * std::numbers::pi * since / period);
  }

  Slot out_;
  Config scheduler_;
  std::string type_;
  double a_ = 0;
  double b_ = 0;
  int64_t period_ = 1;
  int64_t start_ = 0;
};

/// Adds noise: normal, or uniform in [0, scale).
class AddNoise : public Injector {
 public:
  AddNoise(const Config& params, Ports& ports)
      : in_(ports.reads(params, "in")), out_(ports.writes(params, "out")) {
    const auto mode = params.get("mode", "normal");
    if (mode != "normal" && mode != "uniform") {
      throw params.error("mode", fmt::format("expected normal or uniform, found \"{}\"", mode));
    }
    is_normal_ = mode == "normal";
    if (!params.has("scale")) return;
    if (params.peek("scale")->is_text()) {
      scale_key_ = ports.reads(params, "scale");
    } else {
      scale_ = params.get<double>("scale");
    }
  }

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
  double scale_ = 1;
  bool is_normal_;
};

class Concatenate : public Injector {
 public:
  Concatenate(const Config& params, Ports& ports)
      : in_(ports.reads_all(params, "in")),
        out_(ports.writes(params, "out")),
        dim_(params.get<int64_t>("dim")) {}
  void run(StepState& state, const Iteration&) override {
    std::vector<at::Tensor> parts;
    for (const Slot slot : in_) parts.push_back(state.tensor(slot));
    state.set(out_, at::cat(parts, dim_));
  }

 private:
  std::vector<Slot> in_;
  Slot out_;
  int64_t dim_;
};

/// Pads the last dimension with zeros to a multiple.
class Pad : public UnaryInjector {
 public:
  Pad(const Config& params, Ports& ports)
      : UnaryInjector(params, ports), multiple_(params.get_at_least("multiple", 1)) {}
  at::Tensor compute(const at::Tensor& x) override {
    const int64_t missing = (multiple_ - x.size(-1) % multiple_) % multiple_;
    return missing == 0 ? x : at::constant_pad_nd(x, {0, missing});
  }

 private:
  int64_t multiple_;
};

class Squeeze : public UnaryInjector {
 public:
  Squeeze(const Config& params, Ports& ports)
      : UnaryInjector(params, ports), dim_(params.get<int64_t>("dim")) {}
  at::Tensor compute(const at::Tensor& x) override {
    if (x.size(dim_) != 1) {
      throw Error(
          fmt::format("expected one element in dimension {}, found {}", dim_, describe_tensor(x)));
    }
    return x.squeeze(dim_);
  }

 private:
  int64_t dim_;
};

class Constant : public Injector {
 public:
  Constant(const Config& params, Ports& ports)
      : like_(ports.reads(params, "like")), out_(ports.writes(params, "out")) {
    const auto type = params.get<std::string>("constant_type");
    if (type != "zeroes") {
      throw params.error("constant_type", fmt::format("expected zeroes, found \"{}\"", type));
    }
  }
  void run(StepState& state, const Iteration&) override {
    state.set(out_, at::zeros_like(state.tensor(like_)));
  }

 private:
  Slot like_, out_;
};

/// Writes each element of dimension 1 under its own name.
class IndicesExtractor : public Injector {
 public:
  IndicesExtractor(const Config& params, Ports& ports)
      : in_(ports.reads(params, "in")), out_(ports.writes_all(params, "out")) {
    if (params.get_at_least("dim", 1, 1) != 1) throw params.error("dim", "expected 1");
  }
  void run(StepState& state, const Iteration&) override {
    const at::Tensor& x = state.tensor(in_);
    if (x.dim() < 2 || x.size(1) != static_cast<int64_t>(out_.size())) {
      throw Error(fmt::format("out names {} elements of dimension 1, found {}", out_.size(),
                              describe_tensor(x)));
    }
    for (size_t i = 0; i < out_.size(); ++i) {
      state.set(out_[i], x.select(1, static_cast<int64_t>(i)));
    }
  }

 private:
  Slot in_;
  std::vector<Slot> out_;
};

/// Replaces each example by the example before it, and the first by the last.
class BatchRotate : public UnaryInjector {
 public:
  BatchRotate(const Config& params, Ports& ports) : UnaryInjector(params, ports) {}
  at::Tensor compute(const at::Tensor& x) override { return at::roll(x, 1, 0); }
};

/// Picks one of several inputs for each example, and labels which.
class MixAndLabel : public Injector {
 public:
  MixAndLabel(const Config& params, Ports& ports)
      : in_(ports.reads_all(params, "in")),
        out_(ports.writes(params, "out")),
        labels_(ports.writes(params, "out_labels")) {}
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
  Stylegan2Noise(const Config& params, Ports& ports)
      : in_(ports.reads(params, "in")),
        out_(ports.writes(params, "out")),
        mix_(params.get("mix_probability", 0.9)),
        latent_(params.get_at_least("latent_dim", 1, 512)) {
    if (!(mix_ >= 0 && mix_ <= 1)) {
      throw params.error("mix_probability", "expected a number from 0 to 1");
    }
  }
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
  Noise(const Config& params, Ports& ports)
      : UnaryInjector(params, ports), shape_(params.get<std::vector<int64_t>>("shape")) {}
  at::Tensor compute(const at::Tensor& like) override {
    std::vector<int64_t> shape = {like.size(0)};
    shape.insert(shape.end(), shape_.begin(), shape_.end());
    return at::randn(shape, at::TensorOptions(at::kFloat).device(like.device()));
  }

 private:
  std::vector<int64_t> shape_;
};

/// `(x - shift) / scale`, or its inverse.
class Normalize : public UnaryInjector {
 public:
  Normalize(const Config& params, Ports& ports, bool is_back)
      : UnaryInjector(params, ports),
        shift_(params.get<double>("shift")),
        scale_(params.get<double>("scale")),
        is_back_(is_back) {
    if (scale_ == 0) throw params.error("scale", "expected another number than 0");
  }
  at::Tensor compute(const at::Tensor& x) override {
    return is_back_ ? x * scale_ + shift_ : (x - shift_) / scale_;
  }

 private:
  double shift_;
  double scale_;
  bool is_back_;
};

class NormalizeForward : public Normalize {
 public:
  NormalizeForward(const Config& params, Ports& ports) : Normalize(params, ports, false) {}
};

class Denormalize : public Normalize {
 public:
  Denormalize(const Config& params, Ports& ports) : Normalize(params, ports, true) {}
};

/// Selects a range of channels.
class ChannelClip : public UnaryInjector {
 public:
  ChannelClip(const Config& params, Ports& ports)
      : UnaryInjector(params, ports),
        low_(params.get_at_least("channel_low", 0)),
        high_(params.get_at_least("channel_high", low_ + 1)) {}
  at::Tensor compute(const at::Tensor& x) override {
    if (x.dim() < 2 || x.size(1) < high_) {
      throw Error(fmt::format("expected {} channels or more, found {}", high_, describe_tensor(x)));
    }
    return x.narrow(1, low_, high_ - low_);
  }

 private:
  int64_t low_;
  int64_t high_;
};

STEPOP_REGISTER_INJECTOR(
    scheduled_scalar, ScheduledScalar,
    {"A number that depends on the iteration.",
     {{"out", "", ""},
      {"scheduler", "",
       "{type: fixed, weight}, {type: linear_decay, initial_weight, lower_bound, steps, "
       "start_step} "
       "or {type: sinusoidal, upper_weight, lower_weight, period, start_step}"}}});
STEPOP_REGISTER_INJECTOR(add_noise, AddNoise,
                         {"Noise added.",
                          {{"in", "", ""},
                           {"out", "", ""},
                           {"scale", "1", "a number, or a key"},
                           {"mode", "normal", "or uniform, in [0, scale)"}}});
STEPOP_REGISTER_INJECTOR(concatenate, Concatenate,
                         {"Tensors one after another.",
                          {{"in", "", "a list of keys"}, {"out", "", ""}, {"dim", "", ""}}});
STEPOP_REGISTER_INJECTOR(pad, Pad,
                         {"The last dimension made a multiple, with zeros.",
                          {{"in", "", ""}, {"out", "", ""}, {"multiple", "", ""}}});
STEPOP_REGISTER_INJECTOR(squeeze, Squeeze,
                         {"Without a dimension of one element.",
                          {{"in", "", ""}, {"out", "", ""}, {"dim", "", ""}}});
STEPOP_REGISTER_INJECTOR(constant, Constant,
                         {"Zeros of the shape of another key.",
                          {{"constant_type", "", "zeroes"}, {"like", "", ""}, {"out", "", ""}}});
STEPOP_REGISTER_INJECTOR(indices_extractor, IndicesExtractor,
                         {"Each element of dimension 1 under a name of its own.",
                          {{"in", "", ""}, {"out", "", "a list of keys"}, {"dim", "1", ""}}});
STEPOP_REGISTER_INJECTOR(batch_rotate, BatchRotate,
                         {"Each example gets the one before it.",
                          {{"in", "", ""}, {"out", "", ""}}});
STEPOP_REGISTER_INJECTOR(mix_and_label, MixAndLabel,
                         {"For each example one of several inputs, and its number.",
                          {{"in", "", "a list of keys"}, {"out", "", ""}, {"out_labels", "", ""}}});
STEPOP_REGISTER_INJECTOR(stylegan2_noise, Stylegan2Noise,
                         {"One or two latent vectors for each example.",
                          {{"in", "", "whose batch size counts"},
                           {"out", "", ""},
                           {"mix_probability", "0.9", "of two"},
                           {"latent_dim", "512", ""}}});
STEPOP_REGISTER_INJECTOR(
    noise, Noise,
    {"Normal noise.",
     {{"in", "", "whose batch size counts"}, {"out", "", ""}, {"shape", "", "of an example"}}});
STEPOP_REGISTER_INJECTOR(normalize, NormalizeForward,
                         {"(x - shift) / scale",
                          {{"in", "", ""}, {"out", "", ""}, {"shift", "", ""}, {"scale", "", ""}}});
STEPOP_REGISTER_INJECTOR(denormalize, Denormalize,
                         {"x * scale + shift",
                          {{"in", "", ""}, {"out", "", ""}, {"shift", "", ""}, {"scale", "", ""}}});
STEPOP_REGISTER_INJECTOR(channel_clip, ChannelClip,
                         {"Only some channels.",
                          {{"in", "", ""},
                           {"out", "", ""},
                           {"channel_low", "", "the first"},
                           {"channel_high", "", "the first that is not in it"}}});

}  // namespace
}  // namespace stepop::extensible
