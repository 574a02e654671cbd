#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/config.h"
#include "runtime/core/formats/state.h"
#include "runtime/train/checkpoint/tracker.h"
#include "runtime/train/networks/averages.h"
#include "runtime/train/optim/named_parameters.h"

namespace torch::nn {
class Module;
}

namespace stepop {

class CheckpointModules;
class Ema;
class Float32Modules;
class Swa;
class Update;

/// The networks of a run: `model`, or several networks below `networks`, on the device and tracked.
/// With `channels_last: true`, the weights of their convolutions have the channels last in memory.
class Networks {
 public:
  Networks(const Config& config, const c10::Device& device, Tracker& tracker);
  ~Networks();

  /// Throws Error, with the known names, for an unknown name.
  const std::shared_ptr<torch::nn::Module>& get(std::string_view name) const;
  bool empty() const { return networks_.empty(); }
  std::vector<std::string> names() const;

  /// Marks a network that the iterator trains without one of the runtime's updates.
  void set_trained_by_hand(std::string_view name);
  bool is_trained_by_hand(std::string_view name) const;

  /// The parameters and buffers of a network; they share memory with it.
  State tensors(std::string_view name) const;

  using Updates = OrderedMap<std::unique_ptr<Update>>;

  /// Reads `ema`, `swa`, and `eval_weights`, the weights that evaluations use: `model`, the
  /// default, `ema` or `swa`. Tracks the averages of a network as `ema_<network>` and
  /// `swa_<network>`, with the network's own names. `updates` are the updates that train. Without
  /// `train`, a checkpoint without the averages to be evaluated is an error; a training starts them
  /// from its weights. The averages of an optimizer that has some are those of `ema`, and
  /// evaluations use them by default.
  void add_averages(const Config& config, const Updates& updates, Tracker& tracker, bool train);

  /// Of the first `steps` steps those that averages have taken in at the end; all without averages.
  int64_t averaged_steps(int64_t steps) const;

  /// Called before the first training step of a start. Does nothing without `ema`.
  void start_averages();
  /// Called once after each training step, however many updates it made; `global_step` as in `Ema`.
  /// `takes_snapshot`: a snapshot for `swa` is due. Does nothing without `ema` and `swa`.
  void update_averages(int64_t global_step, bool takes_snapshot = false);
  /// Whether `ema`, where it is in the config, is more than a copy of the weights after so many
  /// steps.
  bool averages_within(int64_t steps) const;
  /// While the guard lives, the networks have the weights that evaluations use.
  AveragesGuard evaluation_weights() const;
  /// The same with the best weights to show: `ema` if it is in the config, otherwise `swa` once it
  /// has a snapshot, otherwise the networks' own weights.
  AveragesGuard averaged_weights() const;
  /// The averages that evaluations use, while their statistics of batch normalization are missing;
  /// otherwise null.
  Swa* averages_to_measure() const;

  /// Puts all networks into training or evaluation mode.
  void set_training(bool on);

  /// The trainable parameters of the named networks, with the prefix `<network>.` for several
  /// networks.
  NamedParameters parameters(const std::vector<std::string>& names) const;

  /// Copies every network's buffers (such as running means), and restores them.
  State copy_buffers() const;
  void restore_buffers(const State& buffers) const;

  /// The class of each network.
  std::vector<std::string> class_names() const;

  /// `LeNet, 61,706 parameters`, one text per network.
  std::vector<std::string> descriptions() const;

  /// The networks' warnings, one line each.
  std::vector<std::string> warnings() const;

  /// The modules that `checkpoint_modules` names.
  const CheckpointModules& checkpoint_modules() const { return *checkpoint_modules_; }
  /// The modules that `float32_modules` names.
  const Float32Modules& float32_modules() const { return *float32_modules_; }

 private:
  void add(const std::string& name, const Config& config, std::string_view path,
           const c10::Device& device, Tracker& tracker);
  std::vector<std::string> averaged_networks(const Config& config, const std::string& kind,
                                             const Updates& updates) const;

  OrderedMap<std::shared_ptr<torch::nn::Module>> networks_;
  OrderedMap<std::string> class_names_;
  std::set<std::string, std::less<>> trained_by_hand_;
  std::unique_ptr<CheckpointModules> checkpoint_modules_;
  std::unique_ptr<Float32Modules> float32_modules_;
  std::unique_ptr<Ema> ema_;             ///< Null without `ema`
  std::unique_ptr<Swa> swa_;             ///< null without `swa`.
  const Averages* evaluated_ = nullptr;  ///< Null when evaluations use the networks' own weights.
};

}  // namespace stepop
