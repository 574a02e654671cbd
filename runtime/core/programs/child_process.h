#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/interrupt.h"
#include "runtime/core/programs/child.h"

namespace stepop {

/// How a program ended.
struct ChildResult {
  int exit_code = 0;  ///< Valid if no signal ended it.
  int signal = 0;     ///< The signal that ended it, or 0.
  std::string out;    ///< The end of its standard output, at most 1 MB.
  std::string err;    ///< The end of its standard error, by default at most 16 kB.
};

/// Runs a program (a path, or a name on the PATH) with its arguments and waits for its end. The
/// program gets an empty standard input and its own process group, so that only this process
/// handles a Ctrl-C at the terminal.
///
/// Calls `interrupt` several times a second. If `interrupt` throws, the group gets a SIGTERM, and a
/// SIGKILL a second later, and the exception is passed on. Throws Error when the program cannot be
/// started. With `ends_group` the processes that it leaves in its group are ended in the same way;
/// else they live on.
ChildResult run_child(std::vector<std::string> words, const InterruptCheck& interrupt = {},
                      size_t most_err = 16'000, bool ends_group = false);

/// A program whose standard output is read while it runs. The program gets an empty standard input
/// and its own process group, which ends with this object.
class OutputOfChild {
 public:
  /// `words` as in `run_child`. Throws Error when the program cannot be started.
  explicit OutputOfChild(std::vector<std::string> words);
  ~OutputOfChild();
  OutputOfChild(const OutputOfChild&) = delete;
  OutputOfChild& operator=(const OutputOfChild&) = delete;

  /// Reads at most `size` bytes of the output; waits for them at most `milliseconds`. Returns 0
  /// when none came, and at the end of the output: see `has_closed`.
  size_t read(char* target, size_t size, int milliseconds);

  /// Whether all of the output was read.
  bool has_closed() const;

  /// How the program ended, with the end of its standard error and without its output. Waits at
  /// most `milliseconds`, and returns nothing when the program is still running.
  std::optional<ChildResult> result(int milliseconds);

 private:
  struct Streams;

  std::unique_ptr<Streams> streams_;
  std::unique_ptr<Child> child_;
};

/// Starts this program again with the arguments `words`, the first of which is its name, and does
/// not wait. Its output is appended to the file `output`. The new process gets an empty standard
/// input, its own process group, and a SIGTERM when this process dies, for whatever reason. Called
/// in the main thread. Throws Error when the process cannot be started.
///
/// The process also gets the variables `environment`, `NAME=value` each. `launcher`, words of a
/// shell such as `srun --ntasks 1`, comes before the program; the launcher then has to pass signals
/// on, and the new process may outlive this one.
std::unique_ptr<Child> start_self(std::vector<std::string> words, const std::string& output,
                                  std::vector<std::string> environment = {},
                                  const std::string& launcher = "");

/// Starts a program (a path, or a name on the PATH) that runs next to this one and may outlive it,
/// and does not wait. Its output is appended to the file `output`. The program gets an empty
/// standard input, its own session, so that no signal of the terminal reaches it, and this
/// environment with the variables `environment`, `NAME=value` each. Throws Error when the program
/// cannot be started.
std::unique_ptr<Child> start_beside(std::vector<std::string> words, const std::string& output,
                                    std::vector<std::string> environment = {});

}  // namespace stepop
