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

namespace {

at::Generator copy_of(const c10::Device& device) {
  at::Generator chosen = generator(device);
  const std::lock_guard lock(chosen.mutex());
  return chosen.clone();
}

}  // namespace

GeneratorCopies::GeneratorCopies(const c10::Device& device) : cpu_(copy_of(c10::kCPU)) {
  if (!device.is_cpu()) device_ = copy_of(device);
}

State GeneratorCopies::state() const {
  State state{{"cpu", cpu_.get_state()}};
  if (device_.defined()) state.emplace("cuda", device_.get_state());
  return state;
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
