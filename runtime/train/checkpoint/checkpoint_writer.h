#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "runtime/train/checkpoint/checkpoint.h"

namespace stepop {

/// Writes checkpoints in the background, one at a time. The training loop only waits while the
/// tensors are copied into the writer's own memory on the CPU. That memory is as large as the state
/// and is kept for the next checkpoint.
///
/// All members must be called by one thread.
class CheckpointWriter {
 public:
  using BeforeWrite = std::function<void(const Checkpoint& checkpoint)>;
  using AfterWrite = std::function<void(const std::string& path)>;

  /// Writes into `folder`, which must exist. `before_write` is called in the writer's thread before
  /// each checkpoint, with the copy on the CPU: for files that must be on the disk first, and to
  /// check the copy. An exception of `before_write` is a failure of the write, and nothing is
  /// written.
  explicit CheckpointWriter(std::string folder, BeforeWrite before_write = {});
  /// Waits for the write. Its failure is lost unless `wait()` is called before.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Waits for the previous write, copies `checkpoint` and begins to write it like
  /// `save_checkpoint`; returns its future path. When the file is safe on the disk, `after_write`
  /// is called in the writer's thread; its exception is a failure of the write. Throws the failure
  /// of the previous write, and Error for a tensor that cannot be stored.
  std::string save(const Checkpoint& checkpoint, AfterWrite after_write = {});

  /// Throws the failure of the write, once; does not wait. Cheap enough for every step: it reads
  /// one atomic.
  void check() {
    if (failed_.load(std::memory_order_acquire)) wait();
  }

  /// The path of a checkpoint that became safe on the disk since the last call, if any; does not
  /// wait.
  std::optional<std::string> take_written();

  /// Waits until the checkpoint is written and `after_write` has returned. Throws the failure of
  /// the write, once.
  void wait();

 private:
  void copy(const Checkpoint& checkpoint);
  void write(const AfterWrite& after_write) noexcept;

  std::string folder_;
  BeforeWrite before_write_;
  Checkpoint copy_;  ///< Belongs to the thread while it runs.
  std::exception_ptr failure_;
  std::atomic<bool> failed_ = false;
  std::string written_path_;  ///< Belongs to the loop once `written_` is set.
  std::atomic<bool> written_ = false;
  std::thread thread_;
};

}  // namespace stepop
