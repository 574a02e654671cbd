// Injectors over tensors of any shape, and numbers.
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
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
  struct Params {
    Port out;
    std::string type;
    double a = 0;
    double b = 0;
    int64_t period = 1;
    int64_t start = 0;

    void declare(Parameters& p) {
      p.require("out", out, "");
      const Config* config = p.describe(
          {"scheduler",
           "",
           "{type: fixed, weight}, {type: linear_decay, initial_weight, lower_bound, steps, "
           "start_step} or {type: sinusoidal, upper_weight, lower_weight, period, start_step}",
           false,
           {.kind = "map"}});
      if (config != nullptr) read(config->at("scheduler"));
    }

    void read(const Config& scheduler) {
      type = scheduler.get<std::string>("type");
      if (type == "fixed") {
        a = scheduler.get<double>("weight");
      } else if (type == "linear_decay") {
        a = scheduler.get<double>("initial_weight");
        b = scheduler.get<double>("lower_bound");
        period = read_length(scheduler, "steps", 1);
        start = read_length_or(scheduler, "start_step", 0, 0);
      } else if (type == "sinusoidal") {
        a = scheduler.get<double>("upper_weight");
        b = scheduler.get<double>("lower_weight");
        period = scheduler.get_at_least("period", 1);
        start = read_length_or(scheduler, "start_step", 0, 0);
      } else {
        throw scheduler.error("type",
                              fmt::format("expected fixed, linear_decay or sinusoidal, found "
                                          "\"{}\"",
                                          type));
      }
    }
  };

  ScheduledScalar(const Params& params, Ports& ports) : p_(params), out_(ports.writes(p_.out)) {}

  void run(StepState& state, const Iteration& iteration) override {
    state.set(out_, at(iteration.number));
  }

 private:
  double at(int64_t number) const {
    const auto since = static_cast<double>(std::max<int64_t>(number - p_.start, 0));
    const auto period = static_cast<double>(p_.period);
    if (p_.type == "fixed") return p_.a;
    if (p_.type == "linear_decay") return p_.a - (p_.a - p_.b) * std::min(since / period, 1.0);
    const double middle = (p_.a + p_.b) / 2;
    return middle + (p_.a - p_.b) / 2 * std::cos(2 * std::numbers::pi * since / period);
  }

  Params p_;
  Slot out_;
};

class Concatenate : public Injector {
 public:
  struct Params {
    std::vector<Port> in;
    Port out;
    int64_t dim = 0;

    void declare(Parameters& p) {
      p.require("in", in, "a list of keys");
      p.require("out", out, "");
      p.require("dim", dim, "");
    }
  };

  Concatenate(const Params& params, Ports& ports)
      : in_(ports.reads_all(params.in)), out_(ports.writes(params.out)), dim_(params.dim) {}
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
  struct Params : InOut {
    int64_t multiple = 1;

    void declare(Parameters& p) {
      InOut::declare(p).require("multiple", multiple, "", at_least(1));
    }
  };

  Pad(const Params& params, Ports& ports)
      : UnaryInjector(params, ports), multiple_(params.multiple) {}
  at::Tensor compute(const at::Tensor& x) override {
    const int64_t missing = (multiple_ - x.size(-1) % multiple_) % multiple_;
    return missing == 0 ? x : at::constant_pad_nd(x, {0, missing});
  }

 private:
  int64_t multiple_;
};

class Squeeze : public UnaryInjector {
 public:
  struct Params : InOut {
    int64_t dim = 0;

    void declare(Parameters& p) { InOut::declare(p).require("dim", dim, ""); }
  };

  Squeeze(const Params& params, Ports& ports) : UnaryInjector(params, ports), dim_(params.dim) {}
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
  struct Params {
    std::string constant_type;
    Port like;
    Port out;

    void declare(Parameters& p) {
      p.require("constant_type", constant_type, "zeroes");
      p.require("like", like, "");
      p.require("out", out, "");
    }
  };

  Constant(const Params& params, const Config& config, Ports& ports)
      : like_(ports.reads(params.like)), out_(ports.writes(params.out)) {
    if (params.constant_type != "zeroes") throw config.error("constant_type", "expected zeroes");
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
  struct Params {
    Port in;
    std::vector<Port> out;
    int64_t dim = 1;

    void declare(Parameters& p) {
      p.require("in", in, "");
      p.require("out", out, "a list of keys");
      p.add("dim", dim, "", at_least(1));
    }
  };

  IndicesExtractor(const Params& params, const Config& config, Ports& ports)
      : in_(ports.reads(params.in)), out_(ports.writes_all(params.out)) {
    if (params.dim != 1) throw config.error("dim", "expected 1");
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
  using Params = InOut;
  using UnaryInjector::UnaryInjector;
  at::Tensor compute(const at::Tensor& x) override { return at::roll(x, 1, 0); }
};

/// `(x - shift) / scale`, or its inverse.
template <bool is_back>
class Normalize : public UnaryInjector {
 public:
  struct Params : InOut {
    double shift = 0;
    double scale = 1;

    void declare(Parameters& p) {
      InOut::declare(p);
      p.require("shift", shift, "");
      p.require("scale", scale, "");
    }
  };

  Normalize(const Params& params, const Config& config, Ports& ports)
      : UnaryInjector(params, ports), shift_(params.shift), scale_(params.scale) {
    if (scale_ == 0) throw config.error("scale", "expected another number than 0");
  }
  at::Tensor compute(const at::Tensor& x) override {
    return is_back ? x * scale_ + shift_ : (x - shift_) / scale_;
  }

 private:
  double shift_;
  double scale_;
};

/// Selects a range of channels.
class ChannelClip : public UnaryInjector {
 public:
  struct Params : InOut {
    int64_t low = 0;
    int64_t high = 1;

    void declare(Parameters& p) {
      InOut::declare(p);
      p.require("channel_low", low, "the first", at_least(0));
      p.require("channel_high", high, "the first that is not in it",
                above(static_cast<double>(low)));
    }
  };

  ChannelClip(const Params& params, Ports& ports)
      : UnaryInjector(params, ports), low_(params.low), high_(params.high) {}
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

STEPOP_REGISTER_INJECTOR(scheduled_scalar, ScheduledScalar,
                         {"A number that depends on the iteration."});
STEPOP_REGISTER_INJECTOR(concatenate, Concatenate, {"Tensors one after another."});
STEPOP_REGISTER_INJECTOR(pad, Pad, {"The last dimension made a multiple, with zeros."});
STEPOP_REGISTER_INJECTOR(squeeze, Squeeze, {"Without a dimension of one element."});
STEPOP_REGISTER_INJECTOR(constant, Constant, {"Zeros of the shape of another key."});
STEPOP_REGISTER_INJECTOR(indices_extractor, IndicesExtractor,
                         {"Each element of dimension 1 under a name of its own."});
STEPOP_REGISTER_INJECTOR(batch_rotate, BatchRotate, {"Each example gets the one before it."});
STEPOP_REGISTER_INJECTOR(normalize, Normalize<false>, {"(x - shift) / scale"});
STEPOP_REGISTER_INJECTOR(denormalize, Normalize<true>, {"x * scale + shift"});
STEPOP_REGISTER_INJECTOR(channel_clip, ChannelClip, {"Only some channels."});

}  // namespace
}  // namespace stepop::extensible
