#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/retention.h"

namespace stepop {

/// The folder with a run's checkpoints, `model-<step>.safetensors`. Beside them lie two relative
/// symlinks, `latest.safetensors` and `best.safetensors`.
class CheckpointFolder {
 public:
  /// The folder need not exist: it then has no checkpoints.
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string path_of(int64_t step) const;

  /// Ascending.
  std::vector<int64_t> steps() const;

  /// What the links point at, when that is a checkpoint of this folder which is there.
  std::optional<int64_t> latest() const;
  std::optional<int64_t> best() const;

  /// The path of the newest checkpoint that is not damaged, or nothing when there is none at all.
  /// For each newer one that is, a line is added to `warnings`. Throws Error, with what is wrong
  /// with each, when all are damaged, and when one newer than it cannot be read: it may be whole.
  /// Reads whole files, by `problem_of`, which says what is wrong with one: verify_checkpoint
  /// unless another is given, such as one that keeps what it read.
  using Problem = std::function<std::optional<std::string>(const std::string& path)>;
  std::optional<std::string> newest_whole(std::vector<std::string>& warnings,
                                          const Problem& problem_of = {}) const;

  /// The path of what `-c` names within a run: a step (`700`), `latest` (the newest) or `best`.
  /// Nothing for another text, which then is a path. Throws UsageError, with the steps that are
  /// there, when that one is not. Reads no file.
  std::optional<std::string> find(const std::string& text) const;

  /// Points `latest` at the newest checkpoint and `best` at the one with the best of `values`,
  /// then removes what `retention` drops, and returns the steps that are gone. `values` are those
  /// of all starts of the run; `best` stays where it is while none is known. Throws Error when a
  /// link cannot be made or a file cannot be removed. To be called when the newest is safe on the
  /// disk, and not twice at a time.
  std::vector<int64_t> update_links_and_sweep(const MetricByStep& values,
                                              const Retention& retention) const;

 private:
  std::optional<int64_t> linked(const char* link) const;
  void link(const char* link, int64_t step) const;
  std::string known_steps() const;

  std::string path_;
};

}  // namespace stepop
