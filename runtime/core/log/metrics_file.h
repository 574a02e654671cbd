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

/// `train/metrics.jsonl`: one JSON object a line for every event that logs numbers. Append-only;
/// each line is one write, so a killed run loses at most the last one. Numbers are as `to_json`
/// writes them.
class Metrics : public Sink {
 public:
  /// Opens the file, or creates it. Throws Error when it cannot, as all functions do.
  explicit Metrics(std::string path) : file_(std::move(path)) {}

  /// Appends one line; does nothing when there are no scalars.
  void write(const LogEvent& event, const LogRecord& record) override;
  std::string mend() override { return file_.mend(); }
  void sync() override { file_.sync(); }

 private:
  AppendFile file_;
};

/// One line of `metrics.jsonl`.
struct MetricsLine {
  LogEvent event;
  OrderedMap<double> values;  ///< By name: `train/log_op/loss`.
};

/// One line without its end; nothing when it is not a line of metrics.
std::optional<MetricsLine> parse_metrics_line(std::string_view text);

/// Calls `visit` with each line of a metrics file, in its order, holding one line at a time. Skips
/// lines that are not metrics, and half a last line, which a killed process leaves; returns how
/// many whole lines it skipped. Throws Error when the file cannot be read.
int64_t scan_metrics(const std::string& path, const std::function<void(const MetricsLine&)>& visit);

/// Calls `visit` with each value of one metric and its step, in the order of the file; lines that
/// cannot hold it are not parsed. Throws Error when the file cannot be read.
void scan_metric(const std::string& path, const std::string& metric,
                 const std::function<void(int64_t step, double value)>& visit);

/// The end of a file of lines: the whole ones that its last `bytes` hold, as they stand; of so many
/// more that it is one at least. Half a last line is left out. Throws Error when the file cannot be
/// read.
std::vector<std::string> last_lines(const std::string& path, int64_t bytes = 65536);

/// What split_metrics did.
struct MetricsSplit {
  enum class LastLine {
    kWhole,
    kEnded,    ///< It lacked only its newline, which was added.
    kDropped,  ///< It was cut short.
  };

  int64_t kept = 0;    ///< Lines that the file has now.
  int64_t moved = 0;   ///< Lines that went to the other file, those that are `broken` included.
  int64_t broken = 0;  ///< Lines that are not metrics.
  LastLine last_line = LastLine::kWhole;
};

/// Makes `path` end at a step: lines of a later step, and broken ones, are appended to
/// `superseded_path`, whose folder exists; half a last line is dropped. The others stay as they
/// are, in their order. What is moved is on the disk before the file is replaced by its shorter
/// version, at once; without anything to move or to repair, nothing is written. A file that is not
/// there counts as empty. Nobody may have the file open meanwhile to append to it.
///
/// Throws Error when a file cannot be read or written; then every line is still in one of the two,
/// and calling it again finishes the work.
MetricsSplit split_metrics(const std::string& path, int64_t step,
                           const std::string& superseded_path);

/// One JSON object. NaN and infinities, which JSON lacks, are the texts "NaN", "Infinity" and
/// "-Infinity".
std::string to_json(const OrderedMap<double>& values);

/// What `to_json` wrote. Throws Error, without a path, for a text that is no such object.
OrderedMap<double> scalars_from_json(const std::string& text);

/// Reads a file with one object as `to_json` writes it, an evaluation's scalars.json. Throws Error
/// with the path when it is another.
OrderedMap<double> read_scalars_file(const std::string& path);

}  // namespace stepop
