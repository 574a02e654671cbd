#pragma once

#include <cstdint>
#include <map>
#include <string>

// A device for tests, in the place of a GPU. It takes LibTorch's HPU, which this build of LibTorch
// does not fill: modules of C++ cannot be moved to PrivateUse1.
//
// Its memory is apart from the host's: a read or write of the host outside of a copy is a fault
// that ends the process. Operations are the CPU's and run when they are called, behind everything
// that their stream has to do before. Copies that do not block run later, in a thread of their
// stream and after a delay: a buffer that is read, written or freed too early has wrong numbers.
//
// The device is there from the moment at which this library is loaded. `device: auto` does not take
// it, `device: hpu` does.
namespace stepop::accelerator {

inline constexpr const char* kName = "hpu";

/// Loads the device into LibTorch; a call has no effect after the first.
void load();

/// Says at a fault of the host on the device's memory that it is one. Called by `load`, and again
/// where another handler of faults was set since.
void watch_faults();

/// How long a copy that does not block waits before it runs, in microseconds; 0 at first.
void set_copy_delay(int64_t microseconds);

/// The variable of the environment that makes the device draw its random numbers from the CPU's
/// generator: a training then has the bits of one on the CPU, whatever it draws.
inline constexpr const char* kSharesRandom = "STEPOP_ACCELERATOR_SHARES_RANDOM";

/// How often the host waited for the device since the last call, by the reason: `item`, `copy to
/// host`, `copy from host`, `stream`, `event`, `device`, or the name of an operation whose result
/// the host has to know, such as `aten::nonzero`.
std::map<std::string, int64_t> take_waits();

/// Bytes that are taken, and the most that were since the last `reset_most_bytes`.
int64_t bytes();
int64_t most_bytes();
void reset_most_bytes();

/// An allocation beyond this limit throws c10::OutOfMemoryError; 0: none. At first the limit is
/// what the variable of the environment says.
inline constexpr const char* kByteLimit = "STEPOP_ACCELERATOR_BYTES";
void set_byte_limit(int64_t bytes);

/// Whether the device has no memory for further streams: c10::AcceleratorError, as of CUDA's
/// driver.
void refuse_streams(bool are_refused);

/// How often the memory that LibTorch keeps for later was to be given back since the last call.
int64_t take_emptied_caches();

/// How many graphs were launched since the last call.
int64_t take_graph_launches();

/// How many copies did not block since the last call, and how many of them ran in another stream
/// than the operations.
int64_t take_copies_behind();
int64_t take_copies_beside();

}  // namespace stepop::accelerator
