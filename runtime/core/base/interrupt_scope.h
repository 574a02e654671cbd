#pragma once

#include "runtime/core/base/interrupt.h"

namespace stepop {

/// During its lifetime, deep work of this thread may be interrupted that gets no InterruptCheck:
/// for example, `Dataset::get` of a remote dataset waits far below its caller. Such work calls
/// `current()` regularly. A training has no scope: its steps must not be cut in two.
class InterruptScope {
 public:
  explicit InterruptScope(InterruptCheck check);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  /// The check of this thread's innermost scope; null without a scope.
  static const InterruptCheck& current();

 private:
  InterruptCheck check_;
  const InterruptScope* outer_;
};

}  // namespace stepop
