#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/checkpoint/retention.h"

namespace stepop {

/// The folder of a run's checkpoints, `model-<step>.safetensors`, with two relative symlinks,
/// `latest.safetensors` and `best.safetensors`.
class CheckpointFolder {
 public:
  /// A folder that does not exist has no checkpoints.
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string path_of(int64_t step) const;

  /// The steps with a checkpoint, ascending.
  std::vector<int64_t> steps() const;

  /// The steps to which the links point, if they are existing checkpoints of this folder.
  std::optional<int64_t> latest() const;
  std::optional<int64_t> best() const;

  /// The path of the newest checkpoint that is not damaged; nothing when there are no checkpoints.
  /// Adds a line to `warnings` for each newer damaged checkpoint. Throws Error when all are
  /// damaged, with the problem of each, and when a newer checkpoint cannot be read, because it may
  /// be whole. Whole files are read by `problem_of`, which returns the problem of a file: by
  /// default verify_checkpoint; another function may keep the content.
  using Problem = std::function<std::optional<std::string>(const std::string& path)>;
  std::optional<std::string> newest_whole(std::vector<std::string>& warnings,
                                          const Problem& problem_of = {}) const;

  /// The path of the checkpoint that `-c` names within a run: a step (`700`), `latest` (the newest)
  /// or `best`. Nothing for any other text, which is a path. Throws UsageError, with the steps that
  /// have a checkpoint, when the named checkpoint does not exist. Reads no file.
  std::optional<std::string> find(const std::string& text) const;

  /// Sets `latest` to the newest checkpoint and `best` to the checkpoint with the best of `values`,
  /// then removes the checkpoints that `retention` drops, and returns their steps. `values` cover
  /// all starts of the run; if empty, `best` stays unchanged. `unjudged`: see steps_to_remove.
  /// Throws Error when a link cannot be made or a file cannot be removed. Called when the newest
  /// checkpoint is safe on the disk, and never twice at the same time.
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
