#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/programs/child.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {

/// How a dataset in Python is built.
struct PythonSetup {
  std::string place;            ///< The dataset's place in the config: `datasets/train`.
  std::string python;           ///< The Python: a path, or a name on the PATH.
  std::string folder;           ///< The current folder of the Python process.
  std::string object;           ///< `/home/me/my_data.py:Train` or `torchvision.datasets:MNIST`.
  std::string kwargs = "{}";    ///< The arguments, a map in JSON.
  std::string keys = "null";    ///< The names of the parts of an example in JSON; null: their own.
  std::string collate_fn = {};  ///< A function like `object`; empty: the dataset's own, if any.
  /// `state`: an iterable dataset has state_dict and load_state_dict; `skip`: a resume reads all
  /// earlier examples of the pass again.
  std::string resume = "state";
};

/// What Python says of a dataset after it was built.
struct PythonFacts {
  std::string kind;      ///< The name of its class.
  std::string versions;  ///< `Python 3.11.2, torch 2.13.0`.
  bool is_iterable = false;
  int64_t size = 0;  ///< The number of examples; -1 where an iterable dataset does not know it.
  /// By key, the names of its classes in the order of their numbers: of a torchvision dataset with
  /// `classes`, or of the features of Hugging Face's.
  OrderedMap<std::vector<std::string>> classes = {};
};

/// What the processes of a dataset print, read by a thread. Each line is written to standard error
/// with the dataset's place before it, up to a limit.
class PrintedLines {
 public:
  explicit PrintedLines(std::string place);
  /// Ends the thread.
  ~PrintedLines();
  PrintedLines(const PrintedLines&) = delete;
  PrintedLines& operator=(const PrintedLines&) = delete;

  /// The end of the pipe for the processes; closed by `close_write_end`.
  int write_end() const;
  void close_write_end();

  /// The number of lines so far.
  int64_t count() const;
  /// The last lines after the first `first` lines, each after a line break; waits a moment for
  /// lines that are under way.
  std::string last(int64_t first = 0) const;

 private:
  struct State;

  std::unique_ptr<State> state_;
};

/// A Python process that builds a dataset and forks workers, which share its memory. All of them
/// end with this object, and when this process ends, for whatever reason. The script is
/// in `script/`.
///
/// Messages between stepop and Python begin with their length, u32, little-endian like all numbers.
/// The server gets the setup in JSON and answers with its facts in JSON. Then it gets a socket and
/// a file of 4 kB for each worker (as rights of the byte `W`), and answers with the worker's
/// process id, i32; or the byte `E` with a process id, and answers with the status of `waitpid`,
/// i32.
class PythonServer {
 public:
  /// Builds the dataset. Throws Error with Python's traceback when that fails, and passes on what
  /// `interrupt` throws.
  PythonServer(const PythonSetup& setup, const InterruptCheck& interrupt);
  ~PythonServer();

  const PythonFacts& facts() const { return facts_; }
  const std::string& place() const { return place_; }
  const PrintedLines& printed() const { return *printed_; }

  /// The process, of which the workers are forks.
  pid_t pid() const { return child_->pid(); }

  /// Forks a worker that talks over `socket` and writes its progress into the file `status`. Any
  /// thread may call it. Calls `waiting` about 20 times a second, and passes on what it throws.
  /// Throws Error when there is no server any more.
  pid_t start_worker(int socket, int status, const std::function<void()>& waiting);

  /// How the worker ended: `was ended by signal 9 (Killed)`, with its last lines. Calls `interrupt`
  /// while it waits, for some seconds at most, and passes on what it throws.
  std::string end_of_worker(pid_t pid, const InterruptCheck& interrupt);

 private:
  std::string end_of_server();
  int32_t ask(std::string_view question, std::initializer_list<int> files,
              const std::function<void()>& waiting);

  std::string place_;
  std::unique_ptr<PrintedLines> printed_;
  PythonFacts facts_;
  std::timed_mutex mutex_;  ///< Guards the members below.
  OpenFile control_;
  int64_t open_questions_ = 0;  ///< Whose answers are still to come.
  std::unique_ptr<Child> child_;
};

/// The script of the server and its workers.
const char* python_worker_script();

}  // namespace stepop
