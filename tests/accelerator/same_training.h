#pragma once

#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop::accelerator {

/// What differs between the last checkpoints, besides generators of random numbers: a training on
/// the device has two.
inline std::string different(const TestRun& a, const TestRun& b) {
  REQUIRE(a.checkpoints() == b.checkpoints());
  const int64_t step = a.checkpoints().back();
  const auto without_generators = [step](const TestRun& run) {
    State state = run.checkpoint(step);
    std::erase_if(state, [](const auto& entry) { return entry.first.starts_with("random."); });
    return state;
  };
  return differences(without_generators(a), without_generators(b));
}

/// What the logs say besides times and memory.
inline std::string logged(const TestRun& run) {
  std::string text;
  for (auto line : run.metrics()) {
    for (const char* key : {"time", "runtime/data_wait", "runtime/examples_per_second",
                            "runtime/process_mb", "runtime/device_mb", "runtime/device_peak_mb"}) {
      line.erase(key);
    }
    text += line.dump() + "\n";
  }
  return text;
}

/// The first line that two texts do not share.
inline std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream left(a);
  std::istringstream right(b);
  for (std::string line, other; std::getline(left, line);) {
    if (!std::getline(right, other) || line != other) return line + " != " + other;
  }
  return a.size() == b.size() ? "" : "more lines";
}

}  // namespace stepop::accelerator
