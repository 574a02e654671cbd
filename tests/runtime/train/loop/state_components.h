#pragma once

#include <atomic>

namespace stepop {

/// How many examples of a TestSlowStart were made in another thread than its own.
std::atomic<int>& calls_in_workers();

}  // namespace stepop
