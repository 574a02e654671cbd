#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "runtime/train/checkpoint/checkpoint.h"

namespace stepop {

/// Writes checkpoints in the background, one at a time. The training loop waits only while the
/// tensors are copied into the writer's own memory on the CPU. That memory is as large as the state
/// and is kept for the next checkpoint.
///
/// All members are for one thread.
class CheckpointWriter {
 public:
  using BeforeWrite = std::function<void(const Checkpoint& checkpoint)>;
  using AfterWrite = std::function<void(const std::string& path)>;

  /// Writes into `folder`, which must exist. `before_write` is called in the writer's thread before
  /// each checkpoint, with its copy on the CPU: for what must be on the disk first, and to look at
  /// it. What it throws is a failure of the write, and nothing is written.
  explicit CheckpointWriter(std::string folder, BeforeWrite before_write = {});
  /// Waits for the write. Its failure is lost unless `wait()` is called before.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Waits for the previous write, copies `checkpoint` and begins to write it, as
  /// `save_checkpoint` does; returns the path that it will have. When it is safe on the disk,
  /// `after_write` is called in the writer's thread; what it throws is a failure of the write.
  /// Throws the failure of the previous write, and Error for a tensor that cannot be stored.
  std::string save(const Checkpoint& checkpoint, AfterWrite after_write = {});

  /// Throws what the write failed with, once; does not wait. Cheap enough for every step: it reads
  /// one atomic.
  void check() {
    if (failed_.load(std::memory_order_acquire)) wait();
  }

  /// The path of the checkpoint that became safe on the disk since the last call, if one did; does
  /// not wait.
  std::optional<std::string> take_written();

  /// Waits until the checkpoint is written and `after_write` has returned. Throws what it failed
  /// with, once.
  void wait();

 private:
  void copy(const Checkpoint& checkpoint);
  void write(const AfterWrite& after_write) noexcept;

  std::string folder_;
  BeforeWrite before_write_;
  Checkpoint copy_;  ///< Belongs to the thread while it runs.
  std::exception_ptr failure_;
  std::atomic<bool> failed_ = false;
  std::string written_path_;  ///< The loop's once `written_` is set.
  std::atomic<bool> written_ = false;
  std::thread thread_;
};

}  // namespace stepop
