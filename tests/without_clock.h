#pragma once

#include <nlohmann/json.hpp>

namespace stepop {

/// A line of metrics.jsonl without what the clock and the memory in use make of it, which two
/// trainings that do the same do not share.
template <class Json>
Json without_clock(Json line) {
  for (const char* key : {"time", "runtime/examples_per_second", "runtime/data_wait",
                          "runtime/process_mb", "runtime/device_mb", "runtime/device_peak_mb"}) {
    line.erase(key);
  }
  return line;
}

}  // namespace stepop
