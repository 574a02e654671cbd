#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/checkpoint/retention.h"

namespace stepop {

/// The folder with a run's checkpoints, `model-<step>.safetensors`. Beside them lie two relative
/// symlinks, `latest.safetensors` and `best.safetensors`.
class CheckpointFolder {
 public:
  /// A folder that does not exist has no checkpoints.
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string path_of(int64_t step) const;

  /// Ascending.
  std::vector<int64_t> steps() const;

  /// What the links point at, when it is a checkpoint of this folder that exists.
  std::optional<int64_t> latest() const;
  std::optional<int64_t> best() const;

  /// The path of the newest checkpoint that is not damaged, or nothing when there are no
  /// checkpoints. Adds a line to `warnings` for each newer one that is damaged. Throws Error, with
  /// what is wrong with each, when all are damaged; also when a newer one cannot be read, as it may
  /// be whole. Reads whole files by `problem_of`, which returns what is wrong with one: by default
  /// verify_checkpoint; another one may keep what it read.
  using Problem = std::function<std::optional<std::string>(const std::string& path)>;
  std::optional<std::string> newest_whole(std::vector<std::string>& warnings,
                                          const Problem& problem_of = {}) const;

  /// The path of what `-c` names within a run: a step (`700`), `latest` (the newest) or `best`.
  /// Nothing for any other text, which is a path. Throws UsageError, with the steps that have a
  /// checkpoint, when the named one does not exist. Reads no file.
  std::optional<std::string> find(const std::string& text) const;

  /// Points `latest` at the newest checkpoint and `best` at the one with the best of `values`,
  /// then removes what `retention` drops, and returns the steps that were removed. `values` are
  /// those of all starts of the run; without any, `best` is left as it is. `unjudged`: see
  /// steps_to_remove. Throws Error when a link
  /// cannot be made or a file cannot be removed. Call it when the newest checkpoint is safe on the
  /// disk, and never twice at the same time.
  std::vector<int64_t> update_links_and_sweep(const MetricByStep& values,
                                              const Retention& retention,
                                              const std::set<int64_t>& unjudged = {}) const;

 private:
  std::optional<int64_t> linked(const char* link) const;
  void link(const char* link, int64_t step) const;
  std::string known_steps() const;

  std::string path_;
};

}  // namespace stepop
