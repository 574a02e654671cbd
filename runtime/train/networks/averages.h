#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/formats/state.h"

namespace torch::nn {
class Module;
}

namespace stepop {

/// Averages of the parameters of networks over a training: the common part of EMA and SWA. Every
/// floating-point parameter is averaged, in float32 when its type has fewer bits. Buffers, such as
/// running means and counts, stay the network's own, except buffers for which the averages have
/// statistics.
class Averages {
 public:
  /// `kind`, such as `ema`, names the averages in the config and in checkpoints. `on_cpu`: they are
  /// in the host's memory, whatever the device of the parameters is.
  explicit Averages(std::string kind, bool on_cpu = false)
      : kind_(std::move(kind)), on_cpu_(on_cpu) {}
  virtual ~Averages() = default;
  Averages(const Averages&) = delete;
  Averages& operator=(const Averages&) = delete;

  /// Adds a network whose parameters are averaged.
  virtual void add(const std::string& name, std::shared_ptr<torch::nn::Module> network);

  /// The tensors of a network by name, with averages in the place of parameters; empty while there
  /// are no averages. They share memory with this object and the network; with
  /// `on_cpu` buffers are on the device all the same.
  State state(const std::string& name) const;

  /// Restores the averages; an empty state restores that there are no averages. Throws Error, and
  /// changes nothing, for a state that does not fit. `has_statistics`: whether the state's buffers
  /// belong to the averages.
  void load_state(const std::string& name, const State& state, bool has_statistics = false);

 protected:
  /// Registers a buffer of the network `name` for which the averages may have statistics.
  void add_statistics(const std::string& name, const std::string& key, const at::Tensor& buffer);

  /// The position of `buffer` in `buffers_`.
  size_t place_of_buffer(const at::Tensor& buffer) const;

  /// The parameters, converted where their averages have another type or are elsewhere.
  std::vector<at::Tensor> weights() const;
  /// Each average that does not exist yet becomes its parameter's value.
  void start_averages();

  std::vector<at::Tensor> parameters_;  ///< Each tensor once, even if it has several names.
  std::vector<at::Tensor> averages_;    ///< Undefined before they are restored or started.
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> statistics_;  ///< The averages' values for `buffers_`; undefined: none.

 private:
  friend class AveragesGuard;

  using Places = std::vector<std::pair<std::string, size_t>>;  ///< Name -> position in the lists.
  struct Averaged {
    std::string name;
    std::shared_ptr<torch::nn::Module> network;
    Places parameters;
    Places buffers;
  };

  Averaged& averaged(const std::string& name);
  const Averaged& averaged(const std::string& name) const;

  at::TensorOptions options_of_average(const at::Tensor& parameter) const;

  std::string kind_;
  bool on_cpu_;
  mutable bool are_in_networks_ = false;  ///< Of `AveragesGuard`.
  std::vector<Averaged> networks_;
};

/// Lets `tensor` use the memory of `data`. Bumps the tensor's version, so that backward through a
/// graph that needs the old values throws.
void use_memory(const at::Tensor& tensor, const at::Tensor& data);

/// Puts the averages into the networks during its lifetime: their parameters then use the averages'
/// memory, and nothing is copied unless the types or devices differ. A view of a parameter from
/// before keeps the parameter's own weights. Parameters without averages keep their weights.
class AveragesGuard {
 public:
  /// Does nothing when `averages` is null, or another guard has put them there.
  explicit AveragesGuard(const Averages* averages);
  ~AveragesGuard();
  AveragesGuard(const AveragesGuard&) = delete;
  AveragesGuard& operator=(const AveragesGuard&) = delete;

 private:
  /// Each tensor with replaced memory, and its own memory.
  std::vector<std::pair<at::Tensor, at::Tensor>> replaced_;
  const Averages* averages_ = nullptr;  ///< Those that this guard has put there.
};

}  // namespace stepop
