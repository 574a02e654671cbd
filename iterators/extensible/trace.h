#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <chrono>
#include <string>
#include <vector>

#include "iterators/extensible/step/state.h"
#include "iterators/extensible/step/step.h"
#include "runtime/core/base/text_table.h"

namespace stepop::extensible {

/// A table of the parts of an iteration, with their outputs and times.
class Trace {
 public:
  Trace(const Keys& keys, at::Device device) : keys_(keys), device_(device) {}

  /// Call `begin` before a part runs and `end` after it; `value` is the value of a loss.
  void begin();
  void end(const Step& step, const Part& part, const StepState& state, const at::Tensor& value);
  /// Adds a part that does not run in this iteration.
  void add_off(const Step& step, const Part& part);

  std::string text() const { return table_.text(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::string names(const std::vector<Ports::Use>& uses) const;

  const Keys& keys_;
  at::Device device_;
  Clock::time_point begin_;
  TextTable table_{
      {{"step"}, {"part"}, {"type"}, {"reads"}, {"writes"}, {"what comes out"}, {"ms", true}}};
};

}  // namespace stepop::extensible
