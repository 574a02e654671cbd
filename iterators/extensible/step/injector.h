#pragma once

#include <memory>
#include <string_view>

#include "iterators/extensible/step/ports.h"
#include "iterators/extensible/step/state.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/log/logs.h"

namespace stepop::extensible {

/// Computes values of the state from other values. Register your own class and name it by `type`:
///
///   class Double : public Injector {
///    public:
///     using Params = InOut;
///     Double(const Params& params, Ports& ports)
///         : in_(ports.reads(params.in)), out_(ports.writes(params.out)) {}
///     void run(StepState& state, const Iteration&) override {
///       state.set(out_, state.tensor(in_) * 2);
///     }
///    private:
///     Slot in_, out_;
///   };
///   STEPOP_REGISTER_INJECTOR(double, Double, {"Twice as much."});
///
/// An injector must not change a tensor in place: other keys may share it.
class Injector {
 public:
  virtual ~Injector() = default;

  /// Reads and writes only the keys that the constructor named.
  virtual void run(StepState& state, const Iteration& iteration) = 0;

  /// What is logged of the last run, as `<injector>_<name>`: numbers, where a slash in a name
  /// groups them, histograms, pictures, texts. Numbers are means over the parts of a batch, and the
  /// rest is that of the last part.
  virtual Logs extra_metrics() { return {}; }
};

/// The parameters of an injector from one key to another.
struct InOut {
  Port in;
  Port out;

  /// Returns `p`, for the parameters that follow.
  Parameters& declare(Parameters& p, std::string_view about_in = "",
                      std::string_view about_out = "") {
    p.require("in", in, about_in);
    p.require("out", out, about_out);
    return p;
  }
};

/// An injector from one key, `in`, to another, `out`.
class UnaryInjector : public Injector {
 public:
  UnaryInjector(const InOut& keys, Ports& ports)
      : in_(ports.reads(keys.in)), out_(ports.writes(keys.out)) {}
  /// For a class without `Params`.
  UnaryInjector(const Config& params, Ports& ports)
      : UnaryInjector(read_parameters<InOut>(params), ports) {}

  void run(StepState& state, const Iteration&) final {
    state.set(out_, compute(state.tensor(in_)));
  }

  virtual at::Tensor compute(const at::Tensor& x) = 0;

 private:
  Slot in_, out_;
};

using InjectorRegistry = Registry<std::unique_ptr<Injector>(const Config&, Ports&)>;
InjectorRegistry& injectors();

/// The injector that `params` names by `type`. Throws UsageError with the known names, or for a
/// DL-Art-School injector that is left out, with the reason.
std::unique_ptr<Injector> make_injector(const Config& params, Ports& ports);

}  // namespace stepop::extensible

/// Registers an injector with a constructor from its `Params` or its part of the config (`const
/// Config&`), or both in this order, and `Ports&` behind them.
#define STEPOP_REGISTER_INJECTOR(name, Class, ...)                                                \
  STEPOP_REGISTER(                                                                                \
      ::stepop::extensible::injectors(), #name,                                                   \
      [](const ::stepop::Config& params,                                                          \
         ::stepop::extensible::Ports& ports) -> std::unique_ptr<::stepop::extensible::Injector> { \
        return ::stepop::make_component<Class>(params, ports);                                    \
      },                                                                                          \
      ::stepop::about_class<Class>(__VA_ARGS__))
