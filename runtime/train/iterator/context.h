#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/core/log/run_log.h"
#include "runtime/train/checkpoint/progress.h"
#include "runtime/train/checkpoint/tracker.h"
#include "runtime/train/networks/autocast.h"
#include "runtime/train/optim/named_parameters.h"
#include "runtime/train/optim/non_finite.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/optim/step_clock.h"

namespace torch::nn {
class Module;
}

namespace stepop {

class Dataset;
class Networks;
class Profile;
class Splits;
class SyncBatchNorm;
class Update;
class World;
struct BatchSlice;

/// The progress of the run. The loop writes it, an iterator reads it.
struct Position : Progress {
  std::string split = "train";  ///< The split whose step_op or op is running.
  /// This process's part of that split's batch; 0 in one of several processes that has no example
  /// of it, and runs another in its place.
  double share = 1;
};

/// The run to which this start belongs.
struct RunInfo {
  /// An absolute path; empty before the run has its folder: in constructors, in `initialize()`, and
  /// in the checks before a training.
  std::string folder = {};
  std::string name = {};  ///< The end of the folder's name; given with `-n`.
  /// Whether this start resumes an existing run.
  bool is_resuming = false;
  /// How it ended, known in `after_training`: `done`; `stopped`, to be resumed; or `changed`: it
  /// continues at once with another config.
  std::string ended = {};
};

/// Everything that a run gives to its iterator. Lives as long as the run.
struct Context {
  Config config;  ///< The whole config.
  c10::Device device = c10::kCPU;
  uint64_t seed = 0;
  int rank = 0;
  int world_size = 1;
  /// The processes that train together; all run the same ops, each on its part of a batch.
  World& world;
  OnNan on_nan = OnNan::kStop;  ///< For every update.
  /// For step_op and every op.
  Precision precision = Precision::kFloat32;
  const Position& position;
  const StepClock& clock;
  Networks& networks;
  Splits& splits;
  Tracker& tracker;
  OrderedMap<std::unique_ptr<Update>>& updates;  ///< By the name under which each is tracked.
  const RunInfo& run;
  RunLog& log;  ///< `context().log.info("...")`
  /// The part of each batch that this process takes.
  BatchSlice slice() const;

  /// Null without --profile. `const Span span(context().profile.get(), "sampling");` measures a
  /// part of an op.
  std::shared_ptr<Profile> profile = {};

  /// Null without `distributed/sync_batch_norm`.
  SyncBatchNorm* sync_batch_norm = nullptr;

  /// The network of that name: `model`, or an entry of `networks`. Throws Error when the network
  /// does not exist or has another type.
  template <class T>
  std::shared_ptr<T> network(std::string_view name = "model") const {
    auto typed = std::dynamic_pointer_cast<T>(network_module(name));
    if (!typed) wrong_network_type(name, typeid(T).name());
    return typed;
  }

  /// Makes an optimizer with everything that belongs to an update, from the config at `path`, for
  /// the parameters of the named networks: `update("discriminator_optimizer", {"discriminator"})`.
  /// Tracked under `path`.
  Update& update(const std::string& path = "optimizer",
                 const std::vector<std::string>& network_names = {"model"}) const;
  /// The same for any parameters.
  Update& update_of(const std::string& path, NamedParameters parameters) const;

  /// The same with a config that the iterator has made, tracked under `name`.
  Update& update_from(const std::string& name, const Config& part,
                      NamedParameters parameters) const;

  /// Declares that the iterator trains these networks without the runtime's updates, for example
  /// with its own optimizer, whose state it tracks. Otherwise a parameter without an update is an
  /// error.
  void train_by_hand(const std::vector<std::string>& network_names = {"model"}) const;

  /// A number of the config that may be a schedule, such as a loss weight: `weight.at(step)`.
  Scheduled scheduled(std::string_view path) const { return {config, path}; }
  Scheduled scheduled(std::string_view path, double fallback) const {
    return {config, path, fallback};
  }

  /// Throws Error when the config has no dataset for that split.
  const Dataset& dataset(const std::string& split) const;

  /// Tracks a value of the iterator that must survive a restart. It must be a member, because it is
  /// kept by reference and must live as long as the run. A tensor may still be undefined; it is
  /// then restored on the device of the run.
  void track(const std::string& name, at::Tensor& value) const;
  void track(const std::string& name, int64_t& value) const;
  void track(const std::string& name, double& value) const;
  /// Tracks the parameters and buffers of a module that is not among the config's networks. Moves
  /// the module to the device of the run.
  void track(const std::string& name, torch::nn::Module& module) const;
  /// Tracks anything else by two functions: `save` returns a State, tensors by name, and `load`
  /// takes a State.
  void track(const std::string& name, Tracker::Save save, Tracker::Load load) const;
  template <class T>
  requires(!std::is_base_of_v<torch::nn::Module, T>) void track(const std::string& /*name*/,
                                                                T& /*value*/) const {
    static_assert(sizeof(T) == 0,
                  "track() takes members of the types int64_t, double, at::Tensor or a module, as "
                  "in *layer; for anything else give two functions: track(name, save, load), "
                  "where save returns a stepop::State and load takes one");
  }

 private:
  const std::shared_ptr<torch::nn::Module>& network_module(std::string_view name) const;
  void check_name(const std::string& name) const;
  [[noreturn]] void wrong_network_type(std::string_view name, const char* type) const;
};

}  // namespace stepop
