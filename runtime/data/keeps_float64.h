#pragma once

#include <string_view>

#include "runtime/data/dataset.h"

namespace stepop {

/// A dataset that can leave numbers as float64 that it gives as float32 otherwise, for a view that
/// subtracts before it rounds, such as Standardized.
class KeepsFloat64 {
 public:
  virtual ~KeepsFloat64() = default;

  /// From now on the numbers of `key` are float64, in examples, batches and labels, where float32
  /// would lose digits that matter. Called before several threads read. False where the dataset
  /// cannot do so.
  virtual bool keep_float64(std::string_view key) = 0;
};

/// Asks `dataset` to; false when it cannot.
inline bool keep_float64(Dataset& dataset, std::string_view key) {
  auto* keeper = dynamic_cast<KeepsFloat64*>(&dataset);
  return keeper != nullptr && keeper->keep_float64(key);
}

}  // namespace stepop
