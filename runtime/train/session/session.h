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
#include "runtime/train/networks/generators.h"
#include "runtime/train/networks/init_from.h"
#include "runtime/train/networks/network_calls.h"
#include "runtime/train/networks/sync_batch_norm.h"
#include "runtime/train/optim/metric_schedule.h"
#include "runtime/train/optim/non_finite.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/run/spin_watch.h"
#include "runtime/train/session/freezing.h"
#include "runtime/train/step/scalar_means.h"
#include "runtime/train/when/settings.h"
#include "runtime/train/when/stop_when.h"

namespace stepop {

struct ConvolutionCount;
struct EvaluatedBatch;

/// Everything that a config builds: device, networks, datasets, iterator, and their tracked state.
/// It touches no files except those of the datasets.
class Session {
 public:
  /// Throws Error for whatever cannot be built, and for keys of the config that nothing read; with
  /// `allow_unknown` such keys are a warning in `warnings`. `world` has the processes of this
  /// training; if given, it must outlive this.
  Session(const Config& config, bool train, bool debug, bool allow_unknown, World* world = nullptr);

  ~Session();

  /// Resumes where the checkpoint was taken, unless that is within an epoch whose length or order
  /// changed, or on a training dataset of another size. Throws Error that begins with `path` and
  /// says which tensors do not fit.
  void resume(const Checkpoint& checkpoint, const std::string& path);
  /// Restores everything except optimizers and random generators, which an evaluation does not use.
  void restore_for_evaluation(const Checkpoint& checkpoint, const std::string& path);
  /// Restores the networks alone; the step count begins at 0.
  void restore_weights(const Checkpoint& checkpoint, const std::string& path);

  /// The checkpoint of the current state: all tracked objects, the position and the config. It only
  /// covers this process.
  Checkpoint checkpoint() const {
    return {tracker_.save(), position_, config_yaml(), made_by_, tracker_.networks()};
  }
  /// The checkpoint of all processes, at rank 0. All processes call it. Throws Error when weights,
  /// or an optimizer's state, differ between processes.
  Checkpoint shared_checkpoint() const;
  /// Gives all processes rank 0's weights, and each process its own random numbers.
  void share_beginning();

  /// The names that trained weights, buffers that are finite now, and their averages have in a
  /// checkpoint, whether or not they are in it; none with `on_nan: ignore`. Waits for a device.
  FiniteNames finite_names() const;

  /// Loads the weights of the config's `init_from`, for a run that begins without a checkpoint, and
  /// returns the report; see init_from.h.
  std::string init_weights();

  /// From now on the time of everything that runs is measured.
  void set_profile(std::shared_ptr<Profile> profile);

  /// Forgets how much of the cores other programs used so far: threads that wait for each other may
  /// spin; see spin_watch.h.
  void restart_spin_watch();

  /// Sets the context's information about the run.
  void set_run(RunInfo run) { run_ = std::move(run); }
  /// Sets RunInfo::ended.
  void set_end(std::string ended) { run_.ended = std::move(ended); }
  /// From now on lines of the user's code are written to `console`, which must outlive the session.
  void show_log(Console& console) { log_.begin(console); }

  /// Tells the iterator and the hooks that all tracked state is in place.
  void initialize();

  /// Draws the networks of a context from the calls that were recorded.
  using DrawGraph = std::function<LoggedGraph(const Context&, const NetworkCalls&)>;

  /// Runs one batch of every split through everything; see preflight.h. Throws UsageError for a
  /// metric of the config that nothing logs. `draw_graph` is called where an integration wants a
  /// graph; without it there is no graph. `ranked_by` is what a sweep's table shows, maybe a short
  /// name: an error when it looks like another number.
  void check(const DrawGraph& draw_graph = {}, const std::string& ranked_by = "");

  /// The metrics of early stopping, if it was never observed, of schedules and of hooks.
  std::vector<WatchedNumber> watched_numbers() const;

  /// The ops and callbacks whose numbers are unknown before they ran.
  std::vector<std::string> open_names() const;

  bool trains() const { return train_; }
  const Config& config() const { return config_; }
  /// The resolved config with absolute paths, as it is printed and saved.
  std::string config_yaml() const;
  /// The same as saved in configs/ at a start: with comments for the defaults that were taken.
  std::string config_with_defaults() const;
  const Settings& settings() const { return *settings_; }
  const Context& context() const { return *context_; }
  /// The config's iterator; in an evaluation with `eval_functor`, the functor.
  Iterator& iterator() { return functor_ ? *functor_ : *iterator_; }
  /// The hooks of the config, in its order; none in an evaluation.
  const std::vector<NamedHook>& hooks() const { return hooks_; }
  Position& position() { return position_; }
  StepClock& clock() { return clock_; }
  ScalarMeans& train_means() { return train_means_; }
  StopWhen& stop_when() { return stop_when_; }
  MetricSchedules& metric_schedules() { return metric_schedules_; }
  Freezing& freezing() { return freezing_; }
  const std::string& warnings() const { return warnings_; }
  /// What `check` decided, in lines: default log ops that the iterator lacks do not run, oneDNN is
  /// off. Empty for nothing.
  const std::string& notices() const { return notices_; }
  /// After `check`, if an integration wants it: the graph of the networks that `step_op`, log ops
  /// or eval ops call.
  const LoggedGraph& graph() const { return graph_; }
  /// What the bits of this start depend on besides its config; see run/provenance.h.
  const std::string& made_by() const { return made_by_; }

 private:
  /// Reserved for the values that train ops returned since the last log.
  static constexpr const char* kTrainMeans = "train_means";

  // The steps of the constructor, in their order.
  c10::Device open_machine();
  void open_data(uint64_t seed, const c10::Device& device);
  void build_networks(const c10::Device& device);
  void build_context(uint64_t seed, const c10::Device& device);
  void build_iterator();  ///< The functor and the hooks, too.
  void track_state();     ///< Makes the averages of networks, too.
  void read_plan(const LengthScope& lengths);
  void declare_callbacks();
  void check_plan();

  void seed_rank(uint64_t key);
  /// As the config says it; one step long where nothing trains.
  TrainingLength length() const;
  void tell_lengths(const Progress& before);
  void change_processes(const Checkpoint& checkpoint);
  void check_position(const Checkpoint& checkpoint, const std::string& path) const;
  void check_order(const std::string& yaml, const std::string& path) const;
  void load_state(const Checkpoint& checkpoint, const std::string& path);
  void check_unknown_keys(bool train);
  /// Adds the numbers of callbacks to `names` where a number that is watched is not among them.
  void add_callbacks(const std::vector<WatchedNumber>& watched, const std::string& ranked_by,
                     const std::vector<EvaluatedBatch>& evaluated, LoggedNames& names) const;
  /// Throws UnknownMetric, with `names` that callbacks add to where a metric is not among them.
  void check_metrics(LoggedNames names, const std::vector<EvaluatedBatch>& evaluated,
                     const std::string& ranked_by);
  void add_warning(const std::string& text);
  void add_notice(const std::string& text);
  void choose_onednn(const ConvolutionCount& convolutions);
  void keep_onednn(const Checkpoint& checkpoint, const std::string& path);
  void note_log_ops(const std::vector<ScheduledOp>& asked);

  Config config_;
  std::unique_ptr<World> alone_;  ///< Used when no world is given.
  World& world_;
  std::optional<SpinWatch> spin_watch_;
  bool train_;
  bool debug_;
  bool allow_unknown_;
  Position position_;
  RunInfo run_;
  RunLog log_;
  StepClock clock_;
  ScalarMeans train_means_;
  StopWhen stop_when_;
  MetricSchedules metric_schedules_;
  std::vector<BuiltSchedule> schedules_;
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
  std::string notices_;
  bool is_onednn_chosen_ = false;  ///< Also by the run that this start resumes or evaluates.
  LoggedGraph graph_;
  std::string made_by_;
};

}  // namespace stepop
