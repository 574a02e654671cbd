#include "runtime/train/loop/reporter.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/core/base/shell_text.h"
#include "runtime/core/log/console_sink.h"
#include "runtime/core/log/facts.h"
#include "runtime/core/log/log_files.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/train/checks/image_range.h"

namespace stepop {
namespace {

/// Writes a text as a Python literal.
std::string python_text(const std::string& text) {
  std::string literal = "\"";
  for (const char c : text) literal += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return literal + "\"";
}

LogEvent event_at(const Position& position) {
  return {position.global_step, position.fractional_epoch(), position.samples_seen,
          position.seconds};
}

/// How the images of an op become files.
ImageEncoding encoding_of(const Settings& settings, const std::string& op) {
  for (const auto& each : settings.log_ops) {
    if (each.name.text() == op) return each.images;
  }
  return {};
}

}  // namespace

Reporter::Reporter(Console& console, const RunDirectory& directory, const Settings& settings,
                   int64_t batches_per_epoch, bool writes)
    : console_(console), directory_(directory), settings_(settings), writes_(writes) {
  if (!writes_) return;
  const bool trains = batches_per_epoch > 0;
  if (trains) {
    integrations_ = settings.integrations;
    own_sinks_.push_back(std::make_unique<Metrics>(directory.metrics_file()));
  }
  own_sinks_.push_back(std::make_unique<ConsoleSink>(
      console, ConsoleSink::Plan{trains, settings.num_steps, settings.num_epochs}));
}

std::vector<Sink*> Reporter::sinks() const {
  std::vector<Sink*> all;
  for (const auto& sink : integrations_) all.push_back(sink.get());
  for (const auto& sink : own_sinks_) all.push_back(sink.get());
  return all;
}

void Reporter::begin_training(const Position& position, const std::string& config,
                              const LoggedGraph& graph, Profile* profile) {
  if (!writes_) return;
  log_writer_ = std::make_unique<LogWriter>(directory_.root() + "/train", profile);
  // A step's logs come before its checkpoint, except that a start at step 0 logs step 0 again.
  const int64_t first_step = position.global_step == 0 ? 0 : position.global_step + 1;
  const SinkStart start{directory_.root() + "/train", first_step, config, graph};
  for (Sink* sink : sinks()) sink->begin(start);
}

OrderedMap<double> Reporter::logged(const Position& position, const OrderedMap<Logs>& logs) {
  UnfinishedLog log{.event = event_at(position)};
  log.record.scalars = read_scalars(logs);
  for (const auto& [op, result] : logs) {
    if (writes_) add_files(log, op, result, encoding_of(settings_, op));
  }
  look_at_images(log);
  write(log);
  return std::move(log.record.scalars);
}

/// Warns of images with an unusual range, once for each name.
void Reporter::look_at_images(const UnfinishedLog& log) {
  for (const auto& [name, images] : log.images) {
    if (!seen_images_.insert(name).second) continue;
    const std::string text = image_range_warning(name, images.images);
    if (!text.empty()) console_.warn(text);
  }
}

/// All events take the same way, so that the integrations get them in order.
void Reporter::write(const UnfinishedLog& log) {
  for (const auto& sink : own_sinks_) sink->write(log.event, log.record);
  hand_over_written();
  if (log_writer_ && (log.has_files() || !log_writer_->is_idle())) {
    log_writer_->push(log);
  } else {
    for (const auto& sink : integrations_) sink->write(log.event, log.record);
  }
}

/// Hands events whose files are now written to the integrations.
void Reporter::hand_over_written() {
  if (!log_writer_) return;
  while (const auto log = log_writer_->take_written()) {
    for (const auto& [name, bytes] : log->record.images) {
      console_.debug(fmt::format("wrote {}/train/{}", directory_.root(),
                                 picture_file(name, log->event.step, bytes)));
    }
    for (const auto& sink : integrations_) sink->write(log->event, log->record);
  }
}

void Reporter::finish_files() {
  if (log_writer_) log_writer_->wait();
  hand_over_written();
}

void Reporter::begin_evaluation() {
  finish_files();
  for (Sink* sink : sinks()) sink->evaluation_begins();
}

void Reporter::evaluated(const Position& position, const EvaluationResult& result) {
  write(
      {.event = event_at(position), .record = {.scalars = result.scalars, .is_evaluation = true}});
  for (const auto& [name, message] : result.failures) {
    console_.warn(fmt::format("the callback {} failed: {}", name, message));
  }
  if (!result.warning.empty()) console_.warn(result.warning);
  // If there is an evaluation without a name, its outputs are shown.
  if (!result.name.empty() && !last_outputs_.empty()) return;
  last_outputs_ = result.outputs;
  last_output_key_ = result.first_output;
}

void Reporter::evaluated_before(const Position& position, const OrderedMap<double>& scalars) {
  if (scalars.empty() || !writes_) return;
  const std::string& name = scalars.begin()->first;
  // The lines of this step are the last lines of the file.
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
  hand_over_written();
  const LogEvent event = event_at(position);
  for (const auto& sink : integrations_) sink->step_done(event);
  for (const auto& sink : own_sinks_) sink->step_done(event);
}

void Reporter::evaluating(const std::string& op, int64_t done, int64_t total) {
  for (Sink* sink : sinks()) sink->evaluating(op, done, total);
}

void Reporter::mend() {
  std::vector<std::string> warnings;
  for (Sink* sink : sinks()) {
    if (std::string text = sink->mend(); !text.empty()) warnings.push_back(std::move(text));
  }
  for (const auto& text : warnings) console_.warn(text);  // after the log file was restored
}

void Reporter::sync() {
  for (Sink* sink : sinks()) sink->sync();
}

void Reporter::show_outputs() {
  if (last_outputs_.empty() || !writes_) return;
  console_.info(fmt::format("outputs: {}", last_outputs_));
  say_fact("outputs", last_outputs_);
  const std::string python = fmt::format("import h5py; f = h5py.File({}); print(f[{}].shape)",
                                         python_text(last_outputs_), python_text(last_output_key_));
  console_.info("load them:  python3 -c " + shell_word(python));
}

}  // namespace stepop
