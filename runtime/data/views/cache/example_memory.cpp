#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>

#include "runtime/data/views/cache/example_bytes.h"
#include "runtime/data/views/cache/example_store.h"

namespace stepop {

ExampleMemory::ExampleMemory(int64_t examples, int64_t limit)
    : examples_(static_cast<size_t>(examples)), limit_(limit) {}

ExampleMemory::~ExampleMemory() {
  for (const auto& example : examples_) delete example.load();
}

std::optional<Example> ExampleMemory::find(int64_t index) const {
  const Example* example = examples_[static_cast<size_t>(index)].load(std::memory_order_acquire);
  if (example == nullptr) return std::nullopt;
  return *example;
}

void ExampleMemory::add(int64_t index, const Example& example) {
  const int64_t bytes = bytes_of(example);
  if (bytes_.fetch_add(bytes) + bytes > limit_) {
    bytes_.fetch_sub(bytes);
    return;
  }
  auto kept = std::make_unique<Example>();
  for (const auto& [key, tensor] : example.tensors) {
    // Copied, since the dataset's tensor may be a small part of a large tensor.
    kept->tensors.set(key, tensor.clone(at::MemoryFormat::Contiguous));
  }
  kept->texts = example.texts;
  const Example* none = nullptr;
  auto& place = examples_[static_cast<size_t>(index)];
  if (place.compare_exchange_strong(none, kept.get(), std::memory_order_release,
                                    std::memory_order_relaxed)) {
    kept.release();
  } else {
    bytes_.fetch_sub(bytes);
  }
}

int64_t ExampleMemory::count() const {
  int64_t count = 0;
  for (const auto& example : examples_) count += example.load() != nullptr ? 1 : 0;
  return count;
}

}  // namespace stepop
