#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/value.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/tools/tune/workbench.h"
#include "runtime/train/run/thread_wait.h"

namespace stepop {

/// How processes of this program are started to be measured.
struct TraineeOptions {
  std::string folder;              ///< For files of all of them; see TuneFolder.
  std::vector<std::string> words;  ///< Their arguments, behind which `-b FILE` is put.
  /// The variables that give each of so many processes its place, `NAME=value`.
  std::function<std::vector<std::vector<std::string>>(int count)> places;
  InterruptCheck interrupt = {};  ///< Called often while one is waited for.
  /// Seconds after which a process that gives no answer counts as one that hangs.
  double patience = 600;
};

/// This program as one process, or several that train together, with pipes to each: lines that are
/// written to all, and lines that they answer. They end with this object, and with this process,
/// however it ends.
class Trainee {
 public:
  /// `mode` is what the processes find in kTuneVariable, `config` a resolved config, over which
  /// `settings` are laid. Throws CandidateFailed when they cannot be started.
  Trainee(const TraineeOptions& options, const std::string& mode, const Value& config,
          const OrderedMap<Value>& settings);
  ~Trainee();
  Trainee(const Trainee&) = delete;
  Trainee& operator=(const Trainee&) = delete;

  void write(const std::string& line);
  /// The next line of each, by rank. Throws CandidateFailed with the reason, when one has ended or
  /// gives no answer; what the options' interrupt throws passes.
  std::vector<std::string> read();
  /// The next line of the first; nothing when it has ended well.
  std::optional<std::string> read_first();

  /// Stops a process until `go_on`: threads of OpenMP that spin would disturb what is measured
  /// next. Several processes go on: they would take each other for dead.
  void rest();
  void go_on();

 private:
  struct Process {
    pid_t id = 0;
    OpenFile input;
    OpenFile answers;
    std::string read = {};    ///< What came behind the last line.
    std::string output = {};  ///< The file with what it prints.
    bool has_ended = false;
    int status = 0;
  };

  void start(const std::string& config_file, const Variables& variables, const std::string& output);
  std::optional<std::string> read_line(Process& process);
  [[noreturn]] void fail();
  static std::string reason_of(const Process& process);

  const TraineeOptions& options_;
  std::vector<std::unique_ptr<Process>> processes_;
  bool rests_ = false;
};

}  // namespace stepop
