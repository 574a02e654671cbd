#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <cstddef>

namespace stepop::accelerator {

/// The memory of the device. The host may not touch the addresses that it gives.
c10::Allocator& device_memory();

/// The same memory as the host may touch it, for copies and operations of the device. `address` may
/// be null.
void* reachable(const void* address);

/// The allocation at `address` is used by a stream besides that of its allocation: it is not given
/// to others before the stream has done what it has to do at the moment of its end.
void record_stream(void* address, c10::StreamId stream);

/// Memory of the host from which copies need not block.
c10::Allocator& pinned_memory();
bool is_pinned(const void* address);

}  // namespace stepop::accelerator
