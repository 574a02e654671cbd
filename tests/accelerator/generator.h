#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <cstdint>

namespace stepop::accelerator {

/// Random numbers of the device: those of a generator of the CPU with the same seed.
class DeviceGenerator : public c10::GeneratorImpl {
 public:
  explicit DeviceGenerator(at::Generator numbers = at::detail::createCPUGenerator())
      : GeneratorImpl(c10::Device(c10::kHPU, 0), c10::DispatchKeySet(c10::DispatchKey::HPU)),
        numbers_(std::move(numbers)) {}

  /// The generator that draws.
  const at::Generator& numbers() const { return numbers_; }

  void set_current_seed(uint64_t seed) override { numbers_.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { numbers_.set_offset(offset); }
  uint64_t get_offset() const override { return numbers_.get_offset(); }
  uint64_t current_seed() const override { return numbers_.current_seed(); }
  uint64_t seed() override { return numbers_.seed(); }
  void set_state(const c10::TensorImpl& state) override {
    numbers_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return numbers_.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  DeviceGenerator* clone_impl() const override { return new DeviceGenerator(numbers_.clone()); }

  at::Generator numbers_;
};

const at::Generator& default_generator();

}  // namespace stepop::accelerator
