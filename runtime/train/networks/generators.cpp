#include "runtime/train/networks/generators.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <exception>
#include <mutex>

namespace stepop {
namespace {

at::Generator generator(const c10::Device& device) {
  return at::globalContext().defaultGenerator(device);
}

}  // namespace

void seed_generators(uint64_t seed, const c10::Device& device) {
  for (const c10::Device& target : {c10::Device(c10::kCPU), device}) {
    at::Generator chosen = generator(target);
    const std::lock_guard lock(chosen.mutex());
    chosen.set_current_seed(seed);
  }
}

at::Tensor generator_state(const c10::Device& device) {
  at::Generator chosen = generator(device);
  const std::lock_guard lock(chosen.mutex());
  return chosen.get_state();
}

void restore_generator_state(const c10::Device& device, const at::Tensor& state) noexcept {
  try {
    set_generator_state(device, state);
  } catch (const std::exception&) {
  }
}

void set_generator_state(const c10::Device& device, const at::Tensor& state) {
  at::Generator chosen = generator(device);
  const std::lock_guard lock(chosen.mutex());
  chosen.set_state(state);
}

}  // namespace stepop
