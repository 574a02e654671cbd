#pragma once

#include <chrono>

namespace stepop {

/// From now on this process's TCP connections to `port` of any machine break, and calls that wait
/// for an answer there fail, when the other side was silent for `limit`: by itself Linux waits for
/// a quarter of an hour, or for ever where nothing is on the way, or where the process there is
/// stopped. For connections of libraries that have no such limit.
void end_when_silent(int port, std::chrono::milliseconds limit);

/// Ends this process's TCP connections to `port`; calls that wait there fail.
void break_connections(int port);

}  // namespace stepop
