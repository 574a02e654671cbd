#pragma once

#include <c10/core/Stream.h>

#include <functional>
#include <string>

namespace stepop::accelerator {

/// Work of the device in order: each task runs in the stream's own thread, after the tasks before.
void enqueue(c10::StreamId stream, std::function<void()> task);

/// Returns when the stream has nothing left to do.
void drain(c10::StreamId stream);
bool is_idle(c10::StreamId stream);
void drain_all();

c10::StreamId current_stream();
c10::StreamId exchange_stream(c10::StreamId stream);
/// Another stream, one of a few that take turns.
c10::StreamId next_stream();

/// Sleeps as long as a copy is delayed.
void delay_copy();

void count_wait(const std::string& reason);
void count_copy_behind(c10::StreamId stream);

}  // namespace stepop::accelerator
