#include "runtime/loop/reporter.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/shell_text.h"
#include "runtime/log/console_sink.h"
#include "runtime/log/log_files.h"
#include "runtime/log/metrics_file.h"

namespace stepop {
namespace {

/// A text as Python reads it.
std::string python_text(const std::string& text) {
  std::string literal = "\"";
  for (const char c : text) literal += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return literal + "\"";
}

LogEvent event_at(const Position& position) {
  return {position.global_step, position.fractional_epoch(), position.samples_seen,
          position.seconds};
}

/// Files come before the metrics: a process that is killed in between may log an event twice, but
/// does not lose it. The console comes last.
std::vector<std::shared_ptr<Sink>> sinks_of(Console& console, const RunDirectory& directory,
                                            const Settings& settings, bool trains) {
  std::vector<std::shared_ptr<Sink>> sinks;
  if (trains) {
    sinks.push_back(std::make_shared<LogFiles>());
    sinks.insert(sinks.end(), settings.integrations.begin(), settings.integrations.end());
    sinks.push_back(std::make_shared<Metrics>(directory.metrics_file()));
  }
  sinks.push_back(std::make_shared<ConsoleSink>(
      console, ConsoleSink::Plan{trains, settings.num_steps, settings.num_epochs}));
  return sinks;
}

}  // namespace

Reporter::Reporter(Console& console, const RunDirectory& directory, const Settings& settings,
                   int64_t batches_per_epoch)
    : console_(console),
      directory_(directory),
      sinks_(sinks_of(console, directory, settings, batches_per_epoch > 0)) {}

void Reporter::begin_training(const Position& position, const std::string& config) {
  // What a step logs comes before its checkpoint; but a start at step 0 logs it again.
  const int64_t first_step = position.global_step == 0 ? 0 : position.global_step + 1;
  const SinkStart start{directory_.root() + "/train", first_step, config};
  for (const auto& sink : sinks_) sink->begin(start);
}

OrderedMap<double> Reporter::logged(const Position& position, const OrderedMap<Logs>& logs) {
  LogRecord record;
  for (const auto& [op, result] : logs) {
    for (const auto& [key, scalar] : result.scalars) {
      const std::string name = op + "/" + key;
      record.scalars.set(name, scalar.read(name));
    }
    add_files(record, op, result);
  }
  for (const auto& sink : sinks_) sink->write(event_at(position), record);
  return std::move(record.scalars);
}

void Reporter::begin_evaluation() {
  for (const auto& sink : sinks_) sink->evaluation_begins();
}

void Reporter::evaluated(const Position& position, const EvaluationResult& result) {
  const LogRecord record{.scalars = result.scalars, .is_evaluation = true};
  for (const auto& sink : sinks_) sink->write(event_at(position), record);
  for (const auto& [name, message] : result.failures) {
    console_.warn(fmt::format("the callback {} failed: {}", name, message));
  }
  if (!result.warning.empty()) console_.warn(result.warning);
  // Where there is one without a name, people are shown that.
  if (!result.name.empty() && !last_outputs_.empty()) return;
  last_outputs_ = result.outputs;
  last_output_key_ = result.first_output;
}

void Reporter::evaluated_before(const Position& position, const OrderedMap<double>& scalars) {
  if (scalars.empty()) return;
  const std::string& name = scalars.begin()->first;
  // The lines of this step are the file's last ones.
  for (const auto& text : last_lines(directory_.metrics_file())) {
    const auto line = parse_metrics_line(text);
    if (line && line->event.step == position.global_step && line->values.contains(name)) return;
  }
  begin_evaluation();
  EvaluationResult result;
  result.scalars = scalars;
  evaluated(position, result);
}

void Reporter::step_done(const Position& position) {
  const LogEvent event = event_at(position);
  for (const auto& sink : sinks_) sink->step_done(event);
}

void Reporter::evaluating(const std::string& op, int64_t done, int64_t total) {
  for (const auto& sink : sinks_) sink->evaluating(op, done, total);
}

void Reporter::mend() {
  std::vector<std::string> warnings;
  for (const auto& sink : sinks_) {
    if (std::string text = sink->mend(); !text.empty()) warnings.push_back(std::move(text));
  }
  for (const auto& text : warnings) console_.warn(text);  // into a log that is there again
}

void Reporter::sync() {
  for (const auto& sink : sinks_) sink->sync();
}

void Reporter::show_outputs() {
  if (last_outputs_.empty()) return;
  console_.info(fmt::format("outputs: {}", last_outputs_));
  const std::string python = fmt::format("import h5py; f = h5py.File({}); print(f[{}].shape)",
                                         python_text(last_outputs_), python_text(last_output_key_));
  console_.info("load them:  python -c " + shell_word(python));
}

}  // namespace stepop
