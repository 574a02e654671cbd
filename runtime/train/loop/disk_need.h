#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/base/ordered_map.h"
#include "runtime/train/when/settings.h"

namespace stepop {

/// Estimates what the checkpoints and evaluations of a training will need on the disk, once the
/// first of each was written.
class DiskNeed {
 public:
  /// `settings` must outlive this.
  explicit DiskNeed(const Settings& settings) : settings_(settings) {}

  /// The size of a checkpoint's file.
  void note_checkpoint(int64_t bytes) { checkpoint_bytes_ = bytes; }
  /// The size of the outputs that an evaluation leaves; 0 when none stay.
  void note_evaluation(const std::string& name, int64_t bytes) { evaluations_.set(name, bytes); }

  /// Whether all sizes are known, and `look` was not called.
  bool is_ready() const;

  /// A warning when what comes after `step` needs more than a tenth of the free bytes; else empty.
  std::string look(int64_t step, double free_bytes);

 private:
  double times_after(const Trigger& when, int64_t step) const;

  const Settings& settings_;
  int64_t checkpoint_bytes_ = 0;
  OrderedMap<int64_t> evaluations_;  ///< Bytes by name.
  bool is_over_ = false;
};

/// The bytes that are free for this user on the disk of a folder; infinity when the system does not
/// say.
double free_bytes_at(const std::string& folder);

}  // namespace stepop
