#pragma once

// Messages between the devices of processes, as NCCL carries them between GPUs: an operation runs
// in a stream of its own, behind the work of the current one, and the host continues. What is sent
// goes through Gloo, in the stream's thread. An operation for which a process is missing never
// ends, and what waits for it neither.
//
// The library libstepop_accelerator_messages.so registers it: `distributed/backend: messages`.
namespace stepop::accelerator {

inline constexpr const char* kMessages = "messages";

}  // namespace stepop::accelerator
