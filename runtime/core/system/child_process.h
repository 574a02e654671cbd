#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/interrupt.h"
#include "runtime/core/system/child.h"

namespace stepop {

/// How a program ended.
struct ChildResult {
  int exit_code = 0;  ///< When no signal ended it.
  int signal = 0;     ///< The signal that ended it, or 0.
  std::string out;    ///< The end of its standard output, at most 1 MB.
  std::string err;    ///< The end of its standard error, at most 16 kB unless more is asked for.
};

/// Runs a program (a path, or a name to be looked up on the PATH) with its arguments and waits for
/// its end. It gets an empty standard input and a process group of its own, so that a Ctrl-C at
/// the terminal is ours to handle.
///
/// Calls `interrupt` several times a second; when that throws, the group gets a SIGTERM, and a
/// SIGKILL a second later, and the exception passes. Throws Error when the program cannot be
/// started.
ChildResult run_child(std::vector<std::string> words, const InterruptCheck& interrupt = {},
                      size_t most_err = 16'000);

/// A program whose standard output is read while it runs. It gets an empty standard input and a
/// process group of its own, which ends with this object.
class OutputOfChild {
 public:
  /// `words` as `run_child` has them. Throws Error when the program cannot be started.
  explicit OutputOfChild(std::vector<std::string> words);
  ~OutputOfChild();
  OutputOfChild(const OutputOfChild&) = delete;
  OutputOfChild& operator=(const OutputOfChild&) = delete;

  /// What has come of its output, at most `size` bytes; waits for some, at most `milliseconds`.
  /// 0 when none came, or when there will be none: see `has_closed`.
  size_t read(char* target, size_t size, int milliseconds);

  /// Whether all of its output was read.
  bool has_closed() const;

  /// How it ended, with the end of its standard error and without its output; waits at most
  /// `milliseconds`, and returns nothing when it still runs.
  std::optional<ChildResult> result(int milliseconds);

 private:
  struct Streams;

  std::unique_ptr<Streams> streams_;
  std::unique_ptr<Child> child_;
};

/// Starts this program again with the arguments `words`, the first of which is its name, and does
/// not wait. What it prints is appended to the file `output`. It gets an empty standard input, a
/// process group of its own, and a SIGTERM when this process dies, however that is. To be called in
/// the main thread. Throws Error when it cannot be started.
std::unique_ptr<Child> start_self(std::vector<std::string> words, const std::string& output);

/// Starts a program (a path, or a name to be looked up on the PATH) that lives beside this one and
/// may outlive it, and does not wait. What it prints is appended to the file `output`. It gets an
/// empty standard input, a session of its own, so that no signal of the terminal reaches it, and
/// this environment with `environment`, `NAME=value` each. Throws Error when it cannot be started.
std::unique_ptr<Child> start_beside(std::vector<std::string> words, const std::string& output,
                                    std::vector<std::string> environment = {});

}  // namespace stepop
