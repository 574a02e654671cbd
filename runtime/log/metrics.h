#pragma once

#include <cstdint>
#include <string>

#include "runtime/ordered_map.h"

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

  /// Throws Error when the file cannot be opened.
  explicit Metrics(std::string path);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// Appends one line; does nothing when there are no values.
  void write(const Event& event, const OrderedMap<double>& values);

 private:
  std::string path_;
  int file_;
};

}  // namespace stepop
