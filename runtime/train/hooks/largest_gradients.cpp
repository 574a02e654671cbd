#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/train/iterator/hook.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

/// `encoder.0` for `encoder.0.weight`.
std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, std::min(parameter.rfind('.'), parameter.size()));
}

/// Measures the norm of each layer's gradients, before they are clipped.
class LargestGradients : public Hook {
 public:
  struct Params {
    int64_t top = 5;

    void declare(Parameters& p) {
      p.add("top", top, "so many layers are shown, with their part of the squared norm",
            at_least(1));
    }
  };

  LargestGradients(const Params& params, const Context& context)
      : context_(context), top_(params.top) {
    // What is measured between two logs is logged also by a run that resumes between them.
    context.track(
        "waiting",
        [this] {
          State state = {
              {"count", at::scalar_tensor(static_cast<int64_t>(scalars_.size()), at::kLong)}};
          for (const auto& [name, scalar] : scalars_) {
            state.emplace("norm " + name, at::scalar_tensor(scalar.read(name), at::kDouble));
          }
          return state;
        },
        [this](const State& state) {
          scalars_ = {};
          for (const auto& [name, norm] : state) {
            if (name.starts_with("norm ")) scalars_.set(name.substr(5), norm.item<double>());
          }
        });
  }

  ~LargestGradients() override {
    for (const auto& [name, update] : context_.updates) update->watch_gradients(this, {});
  }

  void before_step(int64_t /*step*/) override {
    for (const auto& [name, update] : context_.updates) {
      update->watch_gradients(
          this, [this, of = name](const NamedParameters& parameters) { measure(of, parameters); });
    }
  }

  void after_step(int64_t step) override { read(step); }

  /// A log comes before after_step.
  Logs log(int64_t step) override {
    read(step);
    return {.scalars = std::exchange(scalars_, {})};
  }

 private:
  struct Measured {
    std::vector<std::string> layers;
    std::vector<at::Tensor> norms;
  };

  void read(int64_t step) {
    for (auto& [update, measured] : std::exchange(measured_, {})) {
      const at::Tensor norms = at::stack(measured.norms).to(at::kCPU, at::kDouble);
      OrderedMap<double> squares;
      double all = 0;
      for (size_t i = 0; i < measured.layers.size(); ++i) {
        const double norm = norms[static_cast<int64_t>(i)].item<double>();
        double* const square = squares.find(measured.layers[i]);
        (square != nullptr ? *square : squares.set(measured.layers[i], 0)) += norm * norm;
        all += norm * norm;
      }
      show(step, update, squares, all);
    }
  }

  void measure(const std::string& update, const NamedParameters& parameters) {
    std::vector<at::Tensor> gradients;
    Measured measured;
    for (const auto& [name, parameter] : parameters) {
      if (!parameter.grad().defined()) continue;
      measured.layers.push_back(layer_of(name));
      gradients.push_back(numbers_of(parameter.grad()));
    }
    if (gradients.empty()) return;
    for (const auto& norm : at::_foreach_norm(gradients, 2)) {
      measured.norms.push_back(norm.to(context_.device, at::kFloat));
    }
    measured_.set(update, std::move(measured));
  }

  void show(int64_t step, const std::string& update, const OrderedMap<double>& squares,
            double all) {
    std::vector<std::pair<std::string, double>> sorted;
    for (const auto& [layer, square] : squares) {
      scalars_.set(update + "/" + layer, std::sqrt(square));
      sorted.emplace_back(layer, square);
    }
    std::ranges::stable_sort(sorted,
                             [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text;
    for (size_t i = 0; i < std::min(sorted.size(), static_cast<size_t>(top_)); ++i) {
      text += fmt::format("{}{} {} ({:.0f} %)", i > 0 ? ", " : "", sorted[i].first,
                          short_number(std::sqrt(sorted[i].second)),
                          all > 0 ? 100 * sorted[i].second / all : 0);
    }
    context_.log.info(fmt::format("step {}: gradients of {}: {} in all; {}", with_thousands(step),
                                  update, short_number(std::sqrt(all)), text));
  }

  const Context& context_;
  int64_t top_;
  OrderedMap<Measured> measured_;  ///< By update, in this step.
  Scalars scalars_;                ///< Since the last log.
};

STEPOP_REGISTER_HOOK(
    LargestGradients,
    {"Shows which layers have the largest gradients, and logs the norm of each; give it a when."});

}  // namespace
}  // namespace stepop
