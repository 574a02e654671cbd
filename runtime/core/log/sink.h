#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/registry.h"
#include "runtime/core/log/logged_graph.h"
#include "runtime/core/pictures/curve.h"
#include "runtime/core/pictures/histogram.h"

namespace stepop {

/// Where a training is when something is logged.
struct LogEvent {
  int64_t step = 0;  ///< Training steps that are complete.
  double epoch = 0;  ///< With its fraction.
  int64_t samples = 0;
  double seconds = 0;  ///< Training time of all starts.
};

/// What one event logs, by full names: `train/log_op/loss`.
struct LogRecord {
  OrderedMap<double> scalars = {};
  OrderedMap<std::string> images = {};  ///< The bytes of PNG or JPEG files, grey or RGB.
  OrderedMap<std::string> texts = {};
  OrderedMap<Histogram> histograms = {};
  OrderedMap<Curve> curves = {};  ///< Their pictures are among `images`, under the same names.
  bool is_evaluation = false;     ///< The result of an evaluation, not of log ops.
};

/// How a training begins or resumes.
struct SinkStart {
  std::string folder = {};  ///< `<run>/train`: files of a sink's own go here.
  int64_t first_step = 0;   ///< What was logged of this step and later ones is logged again.
  std::string config = {};  ///< The resolved config as YAML.
  /// What the networks compute; empty unless a sink wants it.
  LoggedGraph graph = {};
};

/// A place that takes what a run logs: the console, the metrics file, TensorBoard, a service of
/// your own. All functions but `sync` are called by one thread. What one of them throws ends the
/// training.
class Sink {
 public:
  Sink() = default;
  virtual ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// Whether `begin` is to be given the graph, which takes a pass of each network.
  virtual bool wants_graph() const { return false; }
  /// Called once, before the first step.
  virtual void begin(const SinkStart& /*start*/) {}
  /// Takes one event. Of `record` any part may be empty. An integration takes those with pictures
  /// when these are made and on the disk, before the next checkpoint at the latest; all events come
  /// in their order.
  virtual void write(const LogEvent& event, const LogRecord& record) = 0;

  /// Called after each training step; must cost next to nothing.
  virtual void step_done(const LogEvent& /*event*/) {}
  /// An evaluation begins; its result comes by `write`.
  virtual void evaluation_begins() {}
  /// `done` of `total` examples of an evaluation by `op`, `validation/eval_op`, are done.
  virtual void evaluating(const std::string& /*op*/, int64_t /*done*/, int64_t /*total*/) {}

  /// Called before a checkpoint: the place to see that a file was removed from under it, and to
  /// write it again. Returns what people are warned of; empty: nothing.
  virtual std::string mend() { return ""; }
  /// Returns when everything that was written is on the disk. May be called in another thread.
  virtual void sync() {}
};

/// Sinks that a config switches on by name: `integrations: {<name>: {active: true, ...}}`. Each is
/// made from that part of the config before the run has its folder.
using IntegrationRegistry = Registry<std::shared_ptr<Sink>(const Config& params)>;
IntegrationRegistry& integrations();

}  // namespace stepop

/// Registers a Sink with a constructor `Class(const stepop::Config& params)` as the integration
/// `name`: STEPOP_REGISTER_INTEGRATION(uploader, Uploader, {"What it is.", {}});
#define STEPOP_REGISTER_INTEGRATION(name, Class, ...) \
  STEPOP_REGISTER(                                    \
      ::stepop::integrations(), #name,                \
      [](const ::stepop::Config& params) { return std::make_shared<Class>(params); }, __VA_ARGS__)
