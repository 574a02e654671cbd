#pragma once

#include "runtime/core/base/interrupt.h"

namespace stepop {

/// While it lives, work of this thread may be interrupted that has nobody to ask: `Dataset::get` of
/// data that comes from elsewhere waits deep below whoever called it. Such work calls `current()`
/// regularly. A training has none: its steps are not to be cut in two.
class InterruptScope {
 public:
  explicit InterruptScope(InterruptCheck check);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  /// The check of the innermost one of this thread; null when there is none.
  static const InterruptCheck& current();

 private:
  InterruptCheck check_;
  const InterruptScope* outer_;
};

}  // namespace stepop
