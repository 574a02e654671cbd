#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ordered_map.h"
#include "runtime/log/metrics.h"

namespace stepop {

/// One line of `metrics.jsonl`.
struct MetricsLine {
  Metrics::Event event;
  OrderedMap<double> values;  ///< By name: `train/log_op/loss`.
};

/// What `metrics.jsonl` holds.
struct MetricsFile {
  std::vector<MetricsLine> lines;  ///< In the order of the file.
  std::vector<std::string>
      problems;  ///< `<path>:<line>: <what is wrong>`, a text for each bad line.
};

/// Reads a file that Metrics wrote. Half a last line, which a killed process leaves, is passed
/// over; any other line that is no metrics is passed over and told in `problems`. Throws Error when
/// the file cannot be read.
MetricsFile read_metrics(const std::string& path);

/// One line without its end; nothing when it is no metrics.
std::optional<MetricsLine> parse_metrics_line(std::string_view text);

/// Reads a file with one object as `to_json` writes it. Throws Error with the path when it is
/// another.
OrderedMap<double> read_scalars(const std::string& path);

/// What split_metrics did.
struct MetricsSplit {
  enum class LastLine {
    kWhole,
    kEnded,    ///< It was whole but for its end, which it was given.
    kDropped,  ///< It was cut short.
  };

  int64_t kept = 0;    ///< Lines that the file has now.
  int64_t moved = 0;   ///< Lines that went to the other file, those that are `broken` included.
  int64_t broken = 0;  ///< Lines that are no metrics.
  LastLine last_line = LastLine::kWhole;
};

/// Makes `path` end at a step: lines of a later step, and broken ones, are appended to
/// `superseded_path`, whose folder exists; half a last line is dropped. The others stay as they
/// are, in their order. What is moved is on the disk before the file is replaced by its shorter
/// version, at once; without anything to move or to mend, nothing is written. A file that is not
/// there counts as empty. Nobody may have the file open meanwhile to append to it.
///
/// Throws Error when a file cannot be read or written; then every line is still in one of the two,
/// and calling it again finishes the work.
MetricsSplit split_metrics(const std::string& path, int64_t step,
                           const std::string& superseded_path);

}  // namespace stepop
