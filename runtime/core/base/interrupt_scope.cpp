#include "runtime/core/base/interrupt_scope.h"

#include <utility>

namespace stepop {
namespace {

thread_local const InterruptScope* innermost = nullptr;

}  // namespace

InterruptScope::InterruptScope(InterruptCheck check)
    : check_(std::move(check)), outer_(std::exchange(innermost, this)) {}

InterruptScope::~InterruptScope() { innermost = outer_; }

const InterruptCheck& InterruptScope::current() {
  static const InterruptCheck none;
  return innermost != nullptr ? innermost->check_ : none;
}

}  // namespace stepop
