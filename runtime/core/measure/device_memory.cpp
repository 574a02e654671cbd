#include "runtime/core/measure/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

namespace stepop {
namespace {

/// Null for the CPU.
c10::DeviceAllocator* allocator_of(const c10::Device& device) {
  if (device.is_cpu()) return nullptr;
  return dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
}

}  // namespace

std::optional<DeviceMemory> device_memory(const c10::Device& device) {
  auto* allocator = allocator_of(device);
  if (allocator == nullptr) return std::nullopt;
  constexpr auto kWhole = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = allocator->getDeviceStats(device.index());
  const auto& tensors = stats.allocated_bytes.at(kWhole);
  return DeviceMemory{.in_tensors = static_cast<double>(tensors.current),
                      .most_in_tensors = static_cast<double>(tensors.peak),
                      .most_taken = static_cast<double>(stats.reserved_bytes.at(kWhole).peak)};
}

void give_back_memory(const c10::Device& device) {
  if (auto* allocator = allocator_of(device)) allocator->emptyCache();
}

}  // namespace stepop
