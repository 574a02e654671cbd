#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/formats/wav_file.h"
#include "runtime/core/log/logged_graph.h"
#include "runtime/core/pictures/curve.h"
#include "runtime/core/pictures/histogram.h"

namespace stepop {

/// The progress of a training at an event.
struct LogEvent {
  int64_t step = 0;  ///< Complete training steps.
  double epoch = 0;  ///< With its fraction.
  int64_t samples = 0;
  double seconds = 0;  ///< Training time of all starts.
};

/// The content of one event, by full names: `train/log_op/loss`.
struct LogRecord {
  OrderedMap<double> scalars = {};
  OrderedMap<std::string> images = {};  ///< The bytes of PNG or JPEG files, grey or RGB.
  OrderedMap<WavFile> sounds = {};
  OrderedMap<std::string> texts = {};
  OrderedMap<Histogram> histograms = {};
  OrderedMap<Curve> curves = {};  ///< Their pictures are in `images`, with the same names.
  bool is_evaluation = false;     ///< The result of an evaluation, not of log ops.
};

/// How a training begins or resumes.
struct SinkStart {
  std::string folder = {};  ///< `<run>/train`, the folder for a sink's own files.
  int64_t first_step = 0;   ///< Logs of this step and later steps are repeated.
  std::string config = {};  ///< The resolved config as YAML.
  /// The graph of the networks; empty unless a sink wants it.
  LoggedGraph graph = {};
};

/// A receiver of a run's logs: the console, the metrics file, TensorBoard, your own service. All
/// functions but `sync` are called by one thread. An exception of a sink ends the training.
class Sink {
 public:
  Sink() = default;
  virtual ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// Whether `begin` should get the graph, which takes a pass of each network.
  virtual bool wants_graph() const { return false; }
  /// Called once, before the first step.
  virtual void begin(const SinkStart& /*start*/) {}
  /// Takes one event. Any part of `record` may be empty. An integration gets an event with pictures
  /// once they are made and on the disk, at the latest before the next checkpoint; events always
  /// come in order.
  virtual void write(const LogEvent& event, const LogRecord& record) = 0;

  /// Called after each training step; must cost almost nothing.
  virtual void step_done(const LogEvent& /*event*/) {}
  /// An evaluation begins; `write` will be called with its result.
  virtual void evaluation_begins() {}
  /// An evaluation by `op`, `validation/eval_op`, has finished `done` of `total` examples.
  virtual void evaluating(const std::string& /*op*/, int64_t /*done*/, int64_t /*total*/) {}

  /// Called before a checkpoint: the sink may check whether its file was removed, and write it
  /// again. Returns a warning for the user; empty: none.
  virtual std::string mend() { return ""; }
  /// Returns when everything written so far is on the disk. May be called in another thread.
  virtual void sync() {}
};

/// Sinks that a config switches on by name: `integrations: {<name>: {active: true, ...}}`. Each is
/// made from that part of the config, before the run has its folder.

/// A base for their `Params`. Who makes them reads it first.
struct IntegrationParams {
  bool active = false;

  void declare(Parameters& p) { p.add("active", active, "whether it is on"); }
};
using IntegrationRegistry = Registry<std::shared_ptr<Sink>(const Config& params)>;
IntegrationRegistry& integrations();

}  // namespace stepop

/// Registers a Sink with a constructor from its `Params`, which derive from IntegrationParams, its
/// part of the config (`const stepop::Config&`), or both, as the integration `name`:
/// STEPOP_REGISTER_INTEGRATION(uploader, Uploader, {"What it is."});
#define STEPOP_REGISTER_INTEGRATION(name, Class, ...)                         \
  STEPOP_REGISTER(                                                            \
      ::stepop::integrations(), #name,                                        \
      [](const ::stepop::Config& params) -> std::shared_ptr<::stepop::Sink> { \
        return ::stepop::make_component<Class>(params);                       \
      },                                                                      \
      ::stepop::about_class<Class>(__VA_ARGS__))
