#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "iterators/extensible/step/ports.h"
#include "iterators/extensible/step/state.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/log/logs.h"

namespace stepop::extensible {

/// A loss of a step. You register your own class and name it by `type`, like an injector.
class Loss {
 public:
  virtual ~Loss() = default;

  /// The loss of the batch, a mean over its examples: []. Entries of `metrics` are logged as
  /// `<loss>_<name>`. An entry with the empty name is logged as `<loss>` in place of the returned
  /// value: a loss with a penalty in only some iterations sets it to the loss without the penalty,
  /// so that `<loss>` always means the same. The function may write the keys that the constructor
  /// named. A loss that is a derivative returns an undefined tensor, which is not logged, when
  /// gradients are off.
  virtual at::Tensor compute(StepState& state, const Iteration& iteration, Scalars& metrics) = 0;

  /// What the last computed loss was, with its weight, if it is a mean over labels, tokens or
  /// pixels of which some do not count. All losses of the step are then weighted so.
  virtual std::optional<WeightedMean> weighted() const { return std::nullopt; }

  /// What else is logged of the last computation, as `<loss>_<name>`: see Injector.
  virtual Logs extra_metrics() { return {}; }
};

using LossRegistry = Registry<std::unique_ptr<Loss>(const Config&, Ports&)>;
LossRegistry& losses();

/// The loss that `params` names by `type`; throws like `make_injector`.
std::unique_ptr<Loss> make_loss(const Config& params, Ports& ports);

}  // namespace stepop::extensible

/// Registers a loss with a constructor as of an injector.
#define STEPOP_REGISTER_LOSS(name, Class, ...)                                                \
  STEPOP_REGISTER(                                                                            \
      ::stepop::extensible::losses(), #name,                                                  \
      [](const ::stepop::Config& params,                                                      \
         ::stepop::extensible::Ports& ports) -> std::unique_ptr<::stepop::extensible::Loss> { \
        return ::stepop::make_component<Class>(params, ports);                                \
      },                                                                                      \
      ::stepop::about_class<Class>(__VA_ARGS__))
