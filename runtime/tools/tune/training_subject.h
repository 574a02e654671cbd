#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/config/value.h"
#include "runtime/tools/tune/candidate.h"
#include "runtime/tools/tune/trainee.h"
#include "runtime/tools/tune/workbench.h"

namespace stepop {

/// Processes that train with the settings of a candidate.
class TrainingSubject : public Subject {
 public:
  /// Starts it, and trains until it is warm. `config` is resolved, as config_of_steps made it.
  TrainingSubject(const TraineeOptions& options, const Value& config, const Candidate& candidate);

  double measure() override;
  double memory() const override { return memory_; }

  /// What it has, as it says itself.
  const PresentSettings& present() const { return present_; }
  /// `cpu, 2 threads, oneDNN on`
  const std::string& device() const { return device_; }
  int64_t batch_size() const { return batch_size_; }
  /// Of the training data; 0 where nobody knows.
  int64_t examples() const { return examples_; }
  /// Seconds of a step, and of a portion with what comes before it, as they were last.
  double step_seconds() const { return step_seconds_; }
  double portion_seconds() const;

 private:
  void read_present();
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
