#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/value/value.h"

namespace stepop {

/// Settings to be measured: keys at the root of the config, with values that differ from the
/// present ones.
struct Candidate {
  OrderedMap<Value> settings = {};
  bool changes_results = false;  ///< Beyond rounding.

  /// `num_threads 1, onednn false`; `as it is`.
  std::string name() const;
  /// The settings of both, by name.
  Candidate with(const Candidate& other) const;
  /// Whether the two exclude each other: both set the same key, or one sets how threads wait and
  /// the other leaves one thread.
  bool overlaps(const Candidate& other) const;
};

/// What a training has at present, as its own process reports it.
struct PresentSettings {
  /// The tuned keys without `precision`. Without `thread_wait` when the user set OpenMP's
  /// variables.
  OrderedMap<Value> settings = {};
  std::string precision = "float32";
  bool is_cpu = true;
  bool has_images = false;     ///< A network has weights of convolutions.
  bool can_use_onednn = true;  ///< This build has oneDNN.
  /// Keys at the root, with networks that compute in another way than now.
  OrderedMap<Value> networks = {};
  int64_t cores = 1;  ///< Of this machine.
};

/// Each setting that is worth a try on this machine, by itself; the most promising first. With
/// `precision` also those that change results; without `processes` one process only.
std::vector<Candidate> candidates_of(const PresentSettings& present, bool precision,
                                     bool processes);

}  // namespace stepop
