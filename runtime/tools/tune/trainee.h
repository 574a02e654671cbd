#pragma once

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/programs/child.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/core/value/value.h"
#include "runtime/tools/tune/candidate.h"
#include "runtime/tools/tune/search.h"
#include "runtime/train/run/thread_wait.h"

namespace stepop {

/// How processes of this program are started to be measured.
struct TraineeOptions {
  std::string folder;              ///< For all their files; see TuneFolder.
  std::vector<std::string> words;  ///< Their arguments; `-b FILE` is added.
  /// The variables that give each of `count` processes its place, `NAME=value`.
  std::function<std::vector<std::vector<std::string>>(int count)> places;
  InterruptCheck interrupt = {};  ///< Called often during a wait for an answer.
  /// A wait throws TimeOver after it.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// This program as one process, or as several that train together. Lines are written to all of
/// them, and each answers with lines. The processes end with this object, and with this process,
/// however that ends.
class Trainee {
 public:
  /// `mode` is the value of kTuneVariable. `settings` replace keys of `config`, which is resolved.
  /// Throws CandidateFailed when the processes cannot be started. `options` must outlive this.
  Trainee(const TraineeOptions& options, const std::string& mode, Value config,
          const OrderedMap<Value>& settings);
  ~Trainee();
  Trainee(const Trainee&) = delete;
  Trainee& operator=(const Trainee&) = delete;

  void write(const std::string& line);
  /// The next line of each process. Throws CandidateFailed with the reason when a process has
  /// ended, TimeOver, and what the interrupt throws.
  std::vector<std::string> read();
  /// The next line of the first process; nothing when it has ended well.
  std::optional<std::string> read_first();

  /// Stops a process until `resume`: its spinning threads would disturb the next measurement.
  /// Several processes are not stopped: each would take the others for dead.
  void rest() { send(SIGSTOP); }
  void resume() { send(SIGCONT); }

 private:
  struct Process {
    std::unique_ptr<Child> child;
    OpenFile socket;
    std::string output = {};  ///< The file with what it prints.
  };

  void start(const std::string& config_file, std::vector<std::string> variables,
             const std::string& output);
  std::optional<std::string> read_line(const Process& process);
  [[noreturn]] void fail();
  void send(int signal);

  const TraineeOptions& options_;
  std::vector<Process> processes_;
};

/// Processes that train with the settings of a candidate.
class TrainingSubject : public Subject {
 public:
  /// Starts them and trains until they are warm. `config` is that of the whole training.
  TrainingSubject(const TraineeOptions& options, const Value& config,
                  const OrderedMap<Value>& settings);

  double measure() override;
  double memory() const override { return memory_; }

  const PresentSettings& present() const { return present_; }
  /// `cpu, 2 threads, oneDNN on`
  const std::string& device() const { return device_; }
  int64_t batch_size() const { return batch_size_; }
  /// The number of training examples; 0 when it is unknown.
  int64_t examples() const { return examples_; }
  /// The seconds of a portion with the steps before it.
  double portion_seconds() const;

 private:
  void read_report();
  double run(int64_t before, int64_t steps);
  int64_t steps_before() const;

  Trainee trainee_;
  PresentSettings present_;
  std::string device_;
  int64_t batch_size_ = 0;
  int64_t examples_ = 0;
  int64_t steps_ = 1;  ///< Of a portion.
  double step_seconds_ = 0;
  double memory_ = 0;
};

}  // namespace stepop
