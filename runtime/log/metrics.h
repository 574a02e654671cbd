#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/ordered_map.h"
#include "runtime/system/append_file.h"

namespace stepop {

/// One JSON object. NaN and infinities, which JSON lacks, are the texts "NaN", "Infinity" and
/// "-Infinity".
std::string to_json(const OrderedMap<double>& values);

/// `train/metrics.jsonl`: one JSON object a line for every event that logs numbers. Append-only;
/// each line is one write, so a killed run loses at most the last one. Numbers are as
/// `to_json` writes them.
class Metrics {
 public:
  /// Where the run is when something is logged.
  struct Event {
    int64_t step = 0;
    double epoch = 0;  ///< With its fraction.
    int64_t samples = 0;
    double seconds = 0;  ///< Training time of all starts.
  };

  /// Opens the file, or creates it. Throws Error when it cannot, as all functions do.
  explicit Metrics(std::string path) : file_(std::move(path)) {}

  /// Appends one line; does nothing when there are no values.
  void write(const Event& event, const OrderedMap<double>& values);

  /// Returns when all lines are on the disk.
  void sync() { file_.sync(); }

 private:
  AppendFile file_;
};

}  // namespace stepop
