#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/log/sink.h"
#include "runtime/core/system/append_file.h"

namespace stepop {

/// `train/metrics.jsonl`: one JSON object per line for every event that logs numbers. Append-only;
/// each line is one write, so a killed run loses at most the last line. Numbers are written as in
/// `to_json`.
class Metrics : public Sink {
 public:
  /// Opens the file, or creates it. Throws Error when that fails, as do all functions.
  explicit Metrics(std::string path) : file_(std::move(path)) {}

  /// Appends one line; does nothing without scalars.
  void write(const LogEvent& event, const LogRecord& record) override;
  std::string mend() override { return file_.mend(); }
  void sync() override { file_.sync(); }

 private:
  AppendFile file_;
};

/// One line of `metrics.jsonl`.
struct MetricsLine {
  LogEvent event;
  OrderedMap<double> values;  ///< By name, `train/log_op/loss`.
};

/// Parses one line without its newline; nothing when it is not a line of metrics.
std::optional<MetricsLine> parse_metrics_line(std::string_view text);

/// Calls `visit` with each line of a metrics file, in order, with one line in memory at a time.
/// Skips lines that are not metrics, and an incomplete last line, which a killed process leaves;
/// returns the number of complete lines that were skipped. Throws Error when the file cannot be
/// read.
int64_t scan_metrics(const std::string& path, const std::function<void(const MetricsLine&)>& visit);

/// Calls `visit` with each value of one metric and its step, in the order of the file; lines
/// without the metric are not parsed. Throws Error when the file cannot be read.
void scan_metric(const std::string& path, const std::string& metric,
                 const std::function<void(int64_t step, double value)>& visit);

/// The end of a text file: the complete lines within its last `bytes`, unchanged. Reads more bytes
/// if they hold no complete line. An incomplete last line is left out. Throws Error when the file
/// cannot be read.
std::vector<std::string> last_lines(const std::string& path, int64_t bytes = 65536);

/// The result of split_metrics.
struct MetricsSplit {
  enum class LastLine {
    kWhole,
    kEnded,    ///< Only its newline was missing, which was added.
    kDropped,  ///< It was incomplete.
  };

  int64_t kept = 0;    ///< Lines that the file has now.
  int64_t moved = 0;   ///< Lines that went to the other file, including `broken` lines.
  int64_t broken = 0;  ///< Lines that are not metrics.
  LastLine last_line = LastLine::kWhole;
};

/// Cuts `path` at a step: lines of later steps, and broken lines, are appended to
/// `superseded_path`, whose folder exists; an incomplete last line is dropped. The other lines stay
/// unchanged and in order. Moved lines are on the disk before the shorter version replaces the file
/// at once. If there is nothing to move or repair, nothing is written. A missing file counts as
/// empty. No process may have the file open for appending meanwhile.
///
/// Throws Error when a file cannot be read or written; every line is then still in one of the two
/// files, and another call finishes the work.
MetricsSplit split_metrics(const std::string& path, int64_t step,
                           const std::string& superseded_path);

/// One JSON object. NaN and infinity, which JSON lacks, are the texts "NaN", "Infinity" and
/// "-Infinity".
std::string to_json(const OrderedMap<double>& values);

/// Parses the output of `to_json`. Throws Error, without a path, for any other text.
OrderedMap<double> scalars_from_json(const std::string& text);

/// Reads a file with one object in the format of `to_json`, such as an evaluation's scalars.json.
/// Throws Error with the path for any other content.
OrderedMap<double> read_scalars_file(const std::string& path);

}  // namespace stepop
