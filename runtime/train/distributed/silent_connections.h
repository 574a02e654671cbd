#pragma once

#include <chrono>

namespace stepop {

/// From now on this process's TCP connections to `port` of any machine break, and calls that wait
/// for an answer there fail, when the other side was silent for `limit`. The default of Linux is to
/// wait for a quarter of an hour, or forever if no data are on the way or the other process is
/// stopped. For connections of libraries without such a limit.
void end_when_silent(int port, std::chrono::milliseconds limit);

/// Ends this process's TCP connections to `port`; calls that wait there fail.
void break_connections(int port);

}  // namespace stepop
