#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/value.h"

namespace stepop {

/// Settings to be measured: keys of the config, each at its root, with their values. None of them
/// is the present setting.
struct Candidate {
  OrderedMap<Value> settings = {};
  bool changes_results = false;  ///< Beyond rounding: what is learned is another thing.

  /// `num_threads 1, onednn false`; `as it is`.
  std::string name() const;
  /// This one with those of `other`, which win; by their names.
  Candidate with(const Candidate& other) const;
  /// Whether they make no sense together: both set one key, or one says how threads wait and the
  /// other leaves only one.
  bool overlaps(const Candidate& other) const;
};

/// What a training has at present, as a process that was started with its config says.
struct PresentSettings {
  bool is_cpu = true;
  int64_t threads = 1;
  bool onednn = true;
  bool channels_last = false;
  bool has_images = false;     ///< A network has weights of convolutions.
  bool can_use_onednn = true;  ///< This build has it.
  int64_t workers = 0;         ///< n_data_processes
  int64_t prefetch = 2;        ///< n_prefetch
  bool flushes_denormals = false;
  std::string thread_wait = {};  ///< Empty: variables of the user's own.
  std::string precision = "float32";
  int64_t processes = 1;
  int64_t cores = 1;  ///< Of this machine.
};

/// What the keys are now, to be written down; those that nobody could set are left out.
OrderedMap<Value> settings_of(const PresentSettings& present);

/// One way to change the present settings: values of one key, of which one is taken.
using Alternatives = std::vector<Candidate>;

/// What is worth trying on this machine, the most promising first. With `precision` the training's
/// types too; without `processes` never several of them.
std::vector<Alternatives> alternatives_of(const PresentSettings& present, bool precision,
                                          bool processes);

}  // namespace stepop
