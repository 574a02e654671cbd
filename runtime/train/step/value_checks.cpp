#include "runtime/train/step/value_checks.h"

#include <utility>

namespace stepop {
namespace {

thread_local bool are_values_checked = false;

}  // namespace

ValueChecks::ValueChecks() : before_(std::exchange(are_values_checked, true)) {}

ValueChecks::~ValueChecks() { are_values_checked = before_; }

bool ValueChecks::are_on() { return are_values_checked; }

}  // namespace stepop
