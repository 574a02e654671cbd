#pragma once

namespace stepop {

/// While it lives, this thread may wait for a GPU to check values, such as whether classes are in
/// range. The checks before a run do; in a training step each wait would take its time.
class ValueChecks {
 public:
  ValueChecks();
  ~ValueChecks();
  ValueChecks(const ValueChecks&) = delete;
  ValueChecks& operator=(const ValueChecks&) = delete;

  static bool are_on();

 private:
  bool before_;
};

}  // namespace stepop
