#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "iterators/extensible/ports.h"
#include "iterators/extensible/state.h"
#include "runtime/core/config/registry.h"
#include "runtime/core/log/logs.h"

namespace stepop::extensible {

/// One of the losses of a step. A class of your own is registered and named by `type`, as an
/// injector is.
class Loss {
 public:
  virtual ~Loss() = default;

  /// The loss of the batch, a mean over its examples: []. What it adds to `metrics` is logged as
  /// `<loss>_<name>`, and what has the empty name as `<loss>`, instead of what it returns: a loss
  /// with a penalty, which not every iteration has, gives itself without it, so that the number
  /// under one name is always of one thing. It may write the keys that it named when it was built.
  /// One that is a derivative returns an undefined tensor where gradients are off, and is not
  /// logged there.
  virtual at::Tensor compute(StepState& state, const Iteration& iteration, Scalars& metrics) = 0;
};

using LossRegistry = Registry<std::unique_ptr<Loss>(const Config&, Ports&)>;
LossRegistry& losses();

/// The loss that `params` names by `type`; throws as `make_injector` does.
std::unique_ptr<Loss> make_loss(const Config& params, Ports& ports);

}  // namespace stepop::extensible

/// Registers a loss that has a constructor from `(const Config& params, Ports& ports)`.
#define STEPOP_REGISTER_LOSS(name, Class, ...)                                                \
  STEPOP_REGISTER(                                                                            \
      ::stepop::extensible::losses(), #name,                                                  \
      [](const ::stepop::Config& params,                                                      \
         ::stepop::extensible::Ports& ports) -> std::unique_ptr<::stepop::extensible::Loss> { \
        return std::make_unique<Class>(params, ports);                                        \
      },                                                                                      \
      __VA_ARGS__)
