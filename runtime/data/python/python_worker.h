#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/data/batch.h"
#include "runtime/data/python/python_server.h"

namespace stepop {

/// An exception in Python, or a value of an example that cannot be used.
class PythonError : public Error {
 public:
  PythonError(int64_t index, const std::string& text) : Error(text), index_(index) {}
  /// The example in which it happened; -1 when it concerns the batch.
  int64_t index() const { return index_; }

 private:
  int64_t index_;
};

/// One worker of a PythonServer. Only one thread at a time uses it.
///
/// A request has the number of examples n and of released blocks r, both u32, then n indices (i64),
/// n seeds (u64) and r numbers of blocks (u32). The answer is `B`, u32 the number of the block of
/// shared memory in which the tensors are, u64 its size, u32 how many blocks are no more, their
/// numbers, u32 the length of the layout, the layout in JSON, and each text with its length (u32)
/// before it. The block's file comes with the answer that has it first, the layout whenever it
/// differs from the one before. Or the answer is `X`, i64 an index or -1, and the text of an error.
class PythonWorker {
 public:
  /// `timeout` is how long an example may take, and the start of the process, in seconds; 0: any
  /// time, with a line on standard error after a minute. Throws Error when there is no process, and
  /// passes on what `interrupt` throws.
  PythonWorker(PythonServer& server, double timeout, const InterruptCheck& interrupt);
  /// Ends the worker's process.
  ~PythonWorker();
  PythonWorker(const PythonWorker&) = delete;
  PythonWorker& operator=(const PythonWorker&) = delete;

  /// The examples as one batch. `seeds` has the seed of each example's random numbers. The tensors
  /// lie in memory that the worker uses again when the last of them is gone. Throws PythonError
  /// after an exception in Python, with its traceback, and Error when the process dies or takes
  /// too long; passes on what the thread's InterruptScope throws.
  Batch load(std::span<const int64_t> indices, std::span<const uint64_t> seeds);

  /// Sends a request and returns the answer, and the file that comes with it. Throws the same
  /// errors as `load`.
  std::string ask(const std::string& request, const InterruptCheck& interrupt,
                  OpenFile* file = nullptr);

  /// Whether the worker can take another request.
  bool is_usable() const { return is_usable_; }

 private:
  class Block;
  struct Released;
  struct Layout;
  struct Progress;

  void check_process();
  void check_progress();
  void check_start();
  [[noreturn]] void fail_late(double seconds);
  Batch read_batch(std::string_view answer, OpenFile file, std::span<const int64_t> indices);

  PythonServer& server_;
  double timeout_;
  OpenFile socket_;
  pid_t pid_ = 0;
  OpenFile process_;  ///< A file that can be read when the process has ended.
  bool has_ended_ = false;
  bool is_usable_ = true;
  std::unique_ptr<Progress> progress_;
  std::shared_ptr<Released> released_;
  std::map<uint32_t, std::shared_ptr<Block>> blocks_;
  std::unique_ptr<Layout> layout_;
};

}  // namespace stepop
