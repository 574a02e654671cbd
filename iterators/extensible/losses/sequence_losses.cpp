// Losses that apply another loss to elements of dimension 1.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "iterators/extensible/step/inner.h"
#include "iterators/extensible/step/loss.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {
namespace {

struct OfElementParams {
  std::string subtype;
  Port real;
  Port fake;

  Parameters& declare(Parameters& p) {
    p.require("subtype", subtype, "the other loss, whose options are given beside it");
    p.require("real", real, "");
    p.require("fake", fake, "");
    return p;
  }
};

/// The inner loss, and the keys under which it reads an element.
class OfElement : public Loss {
 public:
  OfElement(const OfElementParams& params, const Config& config, Ports& ports,
            const std::vector<std::string>& own_keys)
      : real_(ports.reads(params.real)), fake_(ports.reads(params.fake)) {
    const std::string key = config.path();
    const Config inner =
        inner_params(config, {{"real", Value(key + "/real")}, {"fake", Value(key + "/fake")}});
    Ports own(ports);
    loss_ = make_loss(inner, own);
    check_inner(inner, config, own_keys);
    element_of_real_ = own.reads(inner, "real");
    element_of_fake_ = own.reads(inner, "fake");
    for (const auto& use : own.all_read()) {
      if (use.slot != element_of_real_ && use.slot != element_of_fake_) ports.reads_again(use);
    }
  }

 protected:
  at::Tensor of(int64_t index, StepState& state, const Iteration& iteration, Scalars& metrics) {
    state.set(element_of_real_, state.tensor(real_).select(1, index));
    state.set(element_of_fake_, state.tensor(fake_).select(1, index));
    const at::Tensor loss = loss_->compute(state, iteration, metrics);
    state.free(element_of_real_);
    state.free(element_of_fake_);
    return loss;
  }

  /// The number of elements, which must be equal in both.
  int64_t count(const StepState& state) const {
    const at::Tensor& real = state.tensor(real_);
    const at::Tensor& fake = state.tensor(fake_);
    if (real.dim() < 2 || fake.dim() < 2 || real.size(1) != fake.size(1)) {
      throw Error(fmt::format("expected as many elements in dimension 1 of both, found {} and {}",
                              describe_tensor(real), describe_tensor(fake)));
    }
    return real.size(1);
  }

 private:
  Slot real_, fake_, element_of_real_, element_of_fake_;
  std::unique_ptr<Loss> loss_;
};

/// The weighted sum over all elements.
class Recurrent : public OfElement {
 public:
  struct Params : OfElementParams {
    std::vector<double> weights;

    void declare(Parameters& p) {
      const Config* config =
          OfElementParams::declare(p).describe({"recurrent_weights",
                                                "1",
                                                "a list: one for each element",
                                                false,
                                                {.kind = "number | list of number"}});
      const Value* given = config == nullptr ? nullptr : config->peek("recurrent_weights");
      if (given == nullptr || !given->is_list()) return;
      weights = config->get<std::vector<double>>("recurrent_weights");
    }
  };

  Recurrent(const Params& params, const Config& config, Ports& ports)
      : OfElement(params, config, ports, {"recurrent_weights"}), weights_(params.weights) {}

  at::Tensor compute(StepState& state, const Iteration& iteration, Scalars& metrics) override {
    const int64_t elements = count(state);
    if (!weights_.empty() && static_cast<int64_t>(weights_.size()) != elements) {
      throw Error(fmt::format("recurrent_weights has {} numbers, and there are {} elements",
                              weights_.size(), elements));
    }
    at::Tensor total;
    for (int64_t i = 0; i < elements; ++i) {
      at::Tensor loss = of(i, state, iteration, metrics);
      if (!weights_.empty()) loss = loss * weights_[static_cast<size_t>(i)];
      total = total.defined() ? total + loss : loss;
    }
    return total;
  }

 private:
  std::vector<double> weights_;
};

class ForElement : public OfElement {
 public:
  struct Params : OfElementParams {
    int64_t index = 0;

    void declare(Parameters& p) {
      OfElementParams::declare(p).require("index", index, "which one");
    }
  };

  ForElement(const Params& params, const Config& config, Ports& ports)
      : OfElement(params, config, ports, {"index"}), index_(params.index) {}

  at::Tensor compute(StepState& state, const Iteration& iteration, Scalars& metrics) override {
    const int64_t elements = count(state);
    if (index_ < -elements || index_ >= elements) {
      throw Error(fmt::format("there is no element {} of {}", index_, elements));
    }
    return of(index_, state, iteration, metrics);
  }

 private:
  int64_t index_;
};

STEPOP_REGISTER_LOSS(recurrent, Recurrent,
                     {"Another loss of each element of dimension 1, summed."});
STEPOP_REGISTER_LOSS(for_element, ForElement, {"Another loss of one element of dimension 1."});

}  // namespace
}  // namespace stepop::extensible
