#pragma once

#include <cstddef>
#include <functional>

namespace stepop::accelerator {

/// Whether the current stream's work is being recorded as a graph. As with CUDA, what waits for the
/// device is then an error.
bool is_capturing();

/// Adds a piece of work to the graph that is being recorded; nothing otherwise.
void record_work(std::function<void()> work);

/// The memory that tensors took since the capture began. The operations of a capture compute on it,
/// so that they know shapes, and leave other memory as it is; at the end of the capture it holds
/// NaN, as the graph has not run. Each launch overwrites it where it was taken: on a GPU other
/// tensors of the graph had the same memory before.
void note_of_capture(void* address, size_t bytes);
bool is_of_capture(const void* address);

}  // namespace stepop::accelerator
