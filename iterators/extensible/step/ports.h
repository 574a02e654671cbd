#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "iterators/extensible/step/state.h"
#include "runtime/core/config/config.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/networks/network.h"

namespace stepop::extensible {

/// The connections of an injector or a loss: the keys of the state that it reads and writes, and
/// the networks that it calls. The constructor declares them all, so that a mistake is found before
/// the first batch.
class Ports {
 public:
  /// A key that is read or written, and its place in the config.
  struct Use {
    Slot slot;
    std::string place;  ///< `configs/a.yaml:12: steps/generator/injectors/fake/in`
  };

  Ports(const Context& context, Keys& keys, std::string trained_network)
      : context_(context), keys_(keys), trained_(std::move(trained_network)) {}

  /// The key of the state that `params` names at `key`, `in: lq`.
  Slot reads(const Config& params, std::string_view key);
  /// The same for a list, `in: [lq, hq]`, or for one name.
  std::vector<Slot> reads_all(const Config& params, std::string_view key);
  /// The same for an option that may be missing or null.
  Slot reads_optional(const Config& params, std::string_view key);
  /// A key by its name.
  Slot reads_key(const Config& params, std::string_view key, const std::string& name);

  /// Adds a key that an inner component reads.
  void reads_again(Use use) { reads_.push_back(std::move(use)); }

  Slot writes(const Config& params, std::string_view key);
  std::vector<Slot> writes_all(const Config& params, std::string_view key);
  Slot writes_key(const Config& params, std::string_view key, const std::string& name);

  /// The network that `params` names at `key`, as a `T`.
  template <class T>
  std::shared_ptr<T> network(const Config& params, std::string_view key) {
    auto typed = std::dynamic_pointer_cast<T>(module(params, key));
    if (!typed) fail_type(params, key);
    return typed;
  }
  std::shared_ptr<torch::nn::Module> module(const Config& params, std::string_view key);
  /// The network that the step trains.
  const std::string& trained_network() const { return trained_; }

  const Context& context() const { return context_; }

  const std::vector<Use>& all_read() const { return reads_; }
  const std::vector<Use>& all_written() const { return writes_; }

 private:
  [[noreturn]] void fail_type(const Config& params, std::string_view key) const;

  const Context& context_;
  Keys& keys_;
  std::string trained_;
  std::vector<Use> reads_;
  std::vector<Use> writes_;
};

}  // namespace stepop::extensible
