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

/// Averages of the parameters of networks over a training: what EMA and SWA have in common. Every
/// floating-point parameter is averaged, in float32 when its own type has fewer bits. Buffers, such
/// as running means and counts, are the network's own, but for those of which there are statistics
/// that belong to the averages.
class Averages {
 public:
  /// `kind`, `ema`, is what the config and the names in a checkpoint call them.
  explicit Averages(std::string kind) : kind_(std::move(kind)) {}
  virtual ~Averages() = default;
  Averages(const Averages&) = delete;
  Averages& operator=(const Averages&) = delete;

  /// Averages this network as well.
  virtual void add(const std::string& name, std::shared_ptr<torch::nn::Module> network);

  /// The tensors of a network by name, with the averages for its parameters; empty as long as there
  /// are none. They share memory with this and the network.
  State state(const std::string& name) const;

  /// Restores the averages; from an empty state, that there are none. Throws Error, and changes
  /// nothing, for a state that does not fit. `has_statistics`: whether its buffers are of the
  /// averages.
  void load_state(const std::string& name, const State& state, bool has_statistics = false);

 protected:
  /// Buffers of the network `name` of which there may be statistics of the averages.
  void add_statistics(const std::string& name, const std::string& key, const at::Tensor& buffer);

  /// The position of one of them in `buffers_`.
  size_t place_of_buffer(const at::Tensor& buffer) const;

  /// The parameters, converted where their averages have another type.
  std::vector<at::Tensor> weights() const;
  /// Each average that there is not yet becomes its parameter's value.
  void start_averages();

  std::vector<at::Tensor> parameters_;  ///< Each tensor once, also when it has several names.
  std::vector<at::Tensor> averages_;    ///< Undefined before they are restored or started.
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor>
      statistics_;  ///< Of the averages, for `buffers_`; undefined: there are none.

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

  std::string kind_;
  std::vector<Averaged> networks_;
};

/// Lets `tensor` use the memory of `data`. Its version is bumped, so that backward through a graph
/// over other values throws.
void use_memory(const at::Tensor& tensor, const at::Tensor& data);

/// Puts the averages into the networks while it lives: their parameters then use the averages'
/// memory, and nothing is copied unless the types differ. A view of a parameter that was made
/// before keeps the parameter's own weights. Where there are no averages yet, the weights stay.
class AveragesGuard {
 public:
  /// Does nothing when `averages` is null.
  explicit AveragesGuard(const Averages* averages);
  ~AveragesGuard();
  AveragesGuard(const AveragesGuard&) = delete;
  AveragesGuard& operator=(const AveragesGuard&) = delete;

 private:
  /// What uses another's memory, and its own.
  std::vector<std::pair<at::Tensor, at::Tensor>> replaced_;
};

}  // namespace stepop
