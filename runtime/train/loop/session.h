#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/log/logged_graph.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/iterator/run_hooks.h"
#include "runtime/train/loop/freezing.h"
#include "runtime/train/networks/init_from.h"
#include "runtime/train/networks/network_calls.h"
#include "runtime/train/networks/sync_batch_norm.h"
#include "runtime/train/optim/metric_schedule.h"
#include "runtime/train/run/spin_watch.h"
#include "runtime/train/step/scalar_means.h"
#include "runtime/train/when/settings.h"
#include "runtime/train/when/stop_when.h"

namespace stepop {

/// The name under which the state of LibTorch's random generators is tracked.
inline constexpr const char* kRandomState = "random";

/// Of a config without `seed`.
inline constexpr int64_t kDefaultRunSeed = 1;

/// Everything that a config builds: device, networks, datasets, iterator, and what is tracked of
/// them. It touches no file but those of the datasets.
class Session {
 public:
  /// Throws Error for whatever cannot be built, and for keys of the config that nobody read; these
  /// are a warning, in `warnings`, when `allow_unknown`.
  /// `world`, if any, must outlive this: the processes that do the same.
  Session(const Config& config, bool train, bool debug, bool allow_unknown, World* world = nullptr);

  ~Session();

  /// Resumes where the checkpoint was taken, unless that is within an epoch whose length or order
  /// changed, or on a training dataset of another size. Throws Error that begins with `path` and
  /// says which tensors do not fit.
  void resume(const Checkpoint& checkpoint, const std::string& path);
  /// Takes all but optimizers and random generators, which have no part in an evaluation.
  void restore_for_evaluation(const Checkpoint& checkpoint, const std::string& path);
  /// Takes the networks alone; the count begins at 0.
  void restore_weights(const Checkpoint& checkpoint, const std::string& path);

  /// What a start from here needs: all that is tracked, the position and the config. Of this
  /// process alone.
  Checkpoint checkpoint() const { return {tracker_.save(), position_, config_yaml(), made_by_}; }
  /// The same of all processes, at rank 0. All of them call it. Throws Error when weights, or what
  /// an optimizer knows, are not the same in all.
  Checkpoint shared_checkpoint() const;
  /// All processes begin with rank 0's weights, and each with random numbers of its own.
  void share_beginning();

  /// The names that weights which are trained, and their averages, have in a checkpoint, should
  /// they be in it; none with `on_nan: ignore`.
  std::vector<std::string> trained_weights() const;

  /// Loads the weights that the config's `init_from` names, for a run that begins without a
  /// checkpoint, and returns what there is to say of it; see init_from.h.
  std::string init_weights();

  /// From here on the time of everything that runs is measured.
  void set_profile(std::shared_ptr<Profile> profile);

  /// What other programs took of the cores so far is forgotten: threads that wait for each other
  /// may spin; see spin_watch.h.
  void restart_spin_watch();

  /// What the context tells of the run.
  void set_run(RunInfo run) { run_ = std::move(run); }
  /// Lines of a user's own code go there from here on; `console` must outlive the session.
  void show_log(Console& console) { log_.begin(console); }

  /// Tells the iterator and the hooks that what is tracked is in place.
  void initialize();

  /// What draws the networks of a context by the calls that were seen of them.
  using DrawGraph = std::function<LoggedGraph(const Context&, const NetworkCalls&)>;

  /// Runs one batch of every split through everything; see preflight.h. Throws UsageError for a
  /// metric of the config that nothing logs. `draw_graph` is called where an integration wants a
  /// graph; without it there is none.
  void check(const DrawGraph& draw_graph = {});

  /// Throws UnknownMetric for a metric of early stopping, or one that a schedule follows, that is
  /// none of these.
  void check_metrics(const LoggedNames& names) const;

  /// The ops and callbacks that may log numbers which are not known before they ran.
  std::vector<std::string> open_names() const;

  bool trains() const { return train_; }
  const Config& config() const { return config_; }
  /// The resolved config with its paths made absolute, as it is printed and saved.
  std::string config_yaml() const;
  /// The same as a start saves it in configs/: with comments for the defaults that were taken.
  std::string config_with_defaults() const;
  const Settings& settings() const { return *settings_; }
  const Context& context() const { return *context_; }
  /// The config's, or in an evaluation the one of its `eval_functor`.
  Iterator& iterator() { return functor_ ? *functor_ : *iterator_; }
  /// Those of the config, in its order; none in an evaluation.
  const std::vector<NamedHook>& hooks() const { return hooks_; }
  Position& position() { return position_; }
  StepClock& clock() { return clock_; }
  ScalarMeans& train_means() { return train_means_; }
  StopWhen& stop_when() { return stop_when_; }
  MetricSchedules& metric_schedules() { return metric_schedules_; }
  Freezing& freezing() { return freezing_; }
  const std::string& warnings() const { return warnings_; }
  /// After `check`, which of the usual log ops a training goes without; empty for none.
  const std::string& log_notice() const { return log_notice_; }
  /// What the networks compute, after `check`, if an integration wants it: those that `step_op`,
  /// log ops or eval ops call.
  const LoggedGraph& graph() const { return graph_; }
  /// What the bits of this start depend on besides its config; see run/provenance.h.
  const std::string& made_by() const { return made_by_; }

 private:
  void seed_rank(uint64_t key);
  void change_processes(const Checkpoint& checkpoint);
  void check_order(const std::string& yaml, const std::string& path) const;
  void check_unknown_keys(bool train, bool allow_unknown);
  void add_warning(const std::string& text);
  void note_log_ops(const std::vector<ScheduledOp>& asked);

  Config config_;
  std::unique_ptr<World> alone_;  ///< Where no world is given.
  World& world_;
  std::optional<SpinWatch> spin_watch_;
  bool train_;
  bool debug_;
  Position position_;
  RunInfo run_;
  RunLog log_;
  StepClock clock_;
  ScalarMeans train_means_;
  StopWhen stop_when_;
  MetricSchedules metric_schedules_;
  Freezing freezing_;
  Tracker tracker_;
  OrderedMap<std::unique_ptr<Update>> updates_;
  std::unique_ptr<Networks> networks_;
  std::unique_ptr<InitFrom> init_from_;
  std::optional<SyncBatchNorm> sync_batch_norm_;
  std::unique_ptr<Splits> splits_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Iterator> iterator_;
  std::unique_ptr<Iterator> functor_;
  std::vector<NamedHook> hooks_;
  std::unique_ptr<Settings> settings_;
  std::string warnings_;
  std::string log_notice_;
  LoggedGraph graph_;
  std::string made_by_;
};

}  // namespace stepop
