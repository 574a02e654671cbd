#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "iterators/extensible/step/state.h"
#include "runtime/core/base/error.h"
#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace extensible {

/// What a parameter names, `in: lq`: a key of the state, or a network.
struct Port {
  std::string name;
  std::string place;  ///< `configs/a.yaml:12: steps/generator/injectors/fake/in`

  /// Whether the parameter is given.
  explicit operator bool() const { return !place.empty(); }
  /// Another key at the same place, `gen_top_left` of `gen`.
  Port with_suffix(std::string_view suffix) const { return {name + std::string(suffix), place}; }
  UsageError error(const std::string& message) const { return UsageError(place + ": " + message); }
};

}  // namespace extensible

/// Declares a Port: `Port in; p.require("in", in, "...")`.
template <>
struct ParameterOf<extensible::Port> {
  static extensible::Port read(const Config& config, std::string_view path, const Allowed&);
  static Value shown(const extensible::Port&) { return {}; }
  static std::string kind() { return "text"; }
};
/// One name, or a list of names.
template <>
struct ParameterOf<std::vector<extensible::Port>> {
  static std::vector<extensible::Port> read(const Config& config, std::string_view path,
                                            const Allowed&);
  static Value shown(const std::vector<extensible::Port>&) { return {}; }
  static std::string kind() { return "text | list of text"; }
};

namespace extensible {

/// The connections of an injector or a loss: the keys of the state that it reads and writes, and
/// the networks that it calls. The constructor declares them all, so that a mistake is found before
/// the first batch.
class Ports {
 public:
  /// A key that is read or written, and its place in the config.
  struct Use {
    Slot slot;
    std::string place;  ///< As of Port.
  };

  Ports(const Context& context, Keys& keys, std::string trained_network)
      : context_(context), keys_(keys), trained_(std::move(trained_network)) {}

  /// The key of the state that a parameter names; an empty Slot for a missing parameter.
  Slot reads(const Port& port);
  std::vector<Slot> reads_all(const std::vector<Port>& ports);
  Slot writes(const Port& port);
  std::vector<Slot> writes_all(const std::vector<Port>& ports);

  /// The same for a component without `Params`: what `params` names at `key`.
  Slot reads(const Config& params, std::string_view key);
  std::vector<Slot> reads_all(const Config& params, std::string_view key);
  Slot writes(const Config& params, std::string_view key);
  std::vector<Slot> writes_all(const Config& params, std::string_view key);
  Slot reads_optional(const Config& params, std::string_view key) {
    return params.has(key) ? reads(params, key) : Slot{};
  }
  /// A key by its name.
  Slot reads_key(const Config& params, std::string_view key, const std::string& name) {
    return reads(Port{name, params.where(key)});
  }
  Slot writes_key(const Config& params, std::string_view key, const std::string& name) {
    return writes(Port{name, params.where(key)});
  }

  /// Adds a key that an inner component reads.
  void reads_again(Use use) { reads_.push_back(std::move(use)); }

  /// The network that a parameter names, as a `T`.
  template <class T>
  std::shared_ptr<T> network(const Port& port) {
    auto typed = std::dynamic_pointer_cast<T>(module(port));
    if (!typed) fail_type(port);
    return typed;
  }
  template <class T>
  std::shared_ptr<T> network(const Config& params, std::string_view key) {
    return network<T>(ParameterOf<Port>::read(params, key, {}));
  }
  std::shared_ptr<torch::nn::Module> module(const Port& port);
  std::shared_ptr<torch::nn::Module> module(const Config& params, std::string_view key);
  /// The network that the step trains.
  const std::string& trained_network() const { return trained_; }

  const Context& context() const { return context_; }

  const std::vector<Use>& all_read() const { return reads_; }
  const std::vector<Use>& all_written() const { return writes_; }

 private:
  [[noreturn]] static void fail_type(const Port& port);

  const Context& context_;
  Keys& keys_;
  std::string trained_;
  std::vector<Use> reads_;
  std::vector<Use> writes_;
};

}  // namespace extensible
}  // namespace stepop
