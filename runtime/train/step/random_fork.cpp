#include "runtime/train/step/random_fork.h"

#include "runtime/train/networks/generators.h"

namespace stepop {

RandomFork::RandomFork(uint64_t seed, const c10::Device& device)
    : device_(device), cpu_state_(generator_state(c10::kCPU)) {
  if (!device_.is_cpu()) device_state_ = generator_state(device_);
  seed_generators(seed, device_);
}

RandomFork::~RandomFork() {
  restore_generator_state(c10::kCPU, cpu_state_);
  if (!device_.is_cpu()) restore_generator_state(device_, device_state_);
}

}  // namespace stepop
