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
#include "runtime/train/iterator/autocast.h"
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
class Update;
class World;
struct BatchSlice;

/// Where the run is. The loop writes it, an iterator reads it.
struct Position : Progress {
  std::string split = "train";  ///< The split whose step_op or op is running.
};

/// The run that this start belongs to.
struct RunInfo {
  /// Absolute; empty before the run has its folder: in constructors, `initialize()`, and the checks
  /// before a training.
  std::string folder = {};
  std::string name = {};  ///< The end of the folder's name; given with `-n`.
  /// This start goes on with a run that is there.
  bool is_resuming = false;
};

/// What a run hands to its iterator. Lives as long as the run.
struct Context {
  Config config;  ///< The whole config.
  c10::Device device = c10::kCPU;
  uint64_t seed = 0;
  int rank = 0;
  int world_size = 1;
  /// The processes that train together; all run the same ops, each on its part of a batch.
  World& world;
  OnNan on_nan = OnNan::kStop;  ///< Of every update.
  /// Of step_op and of every op.
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

  /// Null but with --profile: `const Span span(context().profile.get(), "sampling");` measures a
  /// part of an op.
  std::shared_ptr<Profile> profile = {};

  /// The network of that name: `model`, or one of `networks`. Throws Error when there is none, or
  /// when it is of another type.
  template <class T>
  std::shared_ptr<T> network(std::string_view name = "model") const {
    auto typed = std::dynamic_pointer_cast<T>(network_module(name));
    if (!typed) wrong_network_type(name, typeid(T).name());
    return typed;
  }

  /// An optimizer with all that belongs to an update, from the config at `path`, over the
  /// parameters of the named networks: `update("discriminator_optimizer", {"discriminator"})`.
  /// Tracked under `path`.
  Update& update(const std::string& path = "optimizer",
                 const std::vector<std::string>& network_names = {"model"}) const;
  /// The same over any parameters.
  Update& update_of(const std::string& path, NamedParameters parameters) const;

  /// The same with a config that the iterator has made, tracked under `name`.
  Update& update_from(const std::string& name, const Config& part,
                      NamedParameters parameters) const;

  /// Says that the iterator trains these networks by other means than an update of the runtime,
  /// such as an optimizer of its own, whose state it tracks. Without it, a parameter that no update
  /// holds is a mistake.
  void train_by_hand(const std::vector<std::string>& network_names = {"model"}) const;

  /// A number of the config that may be a schedule, such as a loss weight: `weight.at(step)`.
  Scheduled scheduled(std::string_view path) const { return {config, path}; }
  Scheduled scheduled(std::string_view path, double fallback) const {
    return {config, path, fallback};
  }

  /// Throws Error when the config has no dataset for that split.
  const Dataset& dataset(const std::string& split) const;

  /// Values of the iterator that must survive a restart: its members, as they are kept by reference
  /// and must live as long as the run. A tensor may still be undefined; it is then restored on the
  /// device of the run.
  void track(const std::string& name, at::Tensor& value) const;
  void track(const std::string& name, int64_t& value) const;
  void track(const std::string& name, double& value) const;
  /// The parameters and buffers of a module that is no network of the config. It is moved to the
  /// device of the run.
  void track(const std::string& name, torch::nn::Module& module) const;
  /// Anything else, by how it is saved and restored: `save` returns a State, tensors by name, and
  /// `load` takes one.
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
