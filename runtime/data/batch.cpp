#include "runtime/data/batch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {
namespace {

template <class T>
OrderedMap<T> below(const OrderedMap<T>& map, const std::string& prefix) {
  OrderedMap<T> part;
  for (const auto& [key, value] : map) {
    if (key.starts_with(prefix)) part.set(key.substr(prefix.size()), value);
  }
  return part;
}

[[noreturn]] void differs(const std::string& key, int64_t first, int64_t other,
                          const std::string& what) {
  throw Error(
      fmt::format("cannot put examples {} and {} into one batch: \"{}\" {}; examples of one batch "
                  "need the same keys, shapes and types, or a dataset with its own collate()",
                  first, other, key, what));
}

/// Whether the tensor's bytes in memory are its values, one after another.
bool is_plain(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.layout() == at::kStrided && !tensor.is_quantized() &&
         !tensor.is_conj() && !tensor.is_neg() && tensor.is_contiguous();
}

/// Stacks tensors of one type, shape and device with one copy each into one allocation. Plain
/// tensors are copied by memcpy, which for small tensors costs a tenth of at::stack.
at::Tensor stack(const std::vector<const at::Tensor*>& parts) {
  const at::Tensor& first = *parts.front();
  if (!std::all_of(parts.begin(), parts.end(), [](const auto* part) { return is_plain(*part); })) {
    std::vector<at::Tensor> tensors;
    for (const auto* part : parts) tensors.push_back(*part);
    return at::stack(tensors);
  }
  std::vector<int64_t> sizes = {static_cast<int64_t>(parts.size())};
  sizes.insert(sizes.end(), first.sizes().begin(), first.sizes().end());
  at::Tensor out = at::empty(sizes, first.options().requires_grad(false));
  auto* target = static_cast<char*>(out.mutable_data_ptr());
  const size_t bytes = first.nbytes();
  for (size_t i = 0; i < parts.size() && bytes > 0; ++i) {
    std::memcpy(target + i * bytes, parts[i]->const_data_ptr(), bytes);
  }
  return out;
}

}  // namespace

const at::Tensor& Batch::operator[](std::string_view key) const {
  if (const auto* tensor = tensors_.find(key)) return *tensor;
  throw Error(fmt::format("the batch has no tensor \"{}\"; there are: {}{}", key,
                          tensors_.key_list(),
                          texts_.contains(key) ? " (as text it is there: batch.text(key))" : ""));
}

const std::vector<std::string>& Batch::text(std::string_view key) const {
  if (const auto* found = texts_.find(key)) return *found;
  throw Error(fmt::format("the batch has no text \"{}\"; there are: {}", key, texts_.key_list()));
}

Batch Batch::at(std::string_view key) const {
  const std::string prefix = std::string(key) + "/";
  Batch part(below(tensors_, prefix), below(texts_, prefix), indices_);
  if (part.tensors_.empty() && part.texts_.empty()) {
    throw Error(
        fmt::format("the batch has nothing below \"{}\"; there are: {}", key, tensors_.key_list()));
  }
  return part;
}

Batch Batch::rows(int64_t begin, int64_t end) const {
  Batch part;
  for (const auto& [key, tensor] : tensors_) {
    if (tensor.dim() == 0 || tensor.size(0) != size()) {
      throw Error(fmt::format("a batch of {} examples cannot be divided: \"{}\" is {}", size(), key,
                              describe_tensor(tensor)));
    }
    part.tensors_.set(key, tensor.slice(0, begin, end));
  }
  for (const auto& [key, texts] : texts_) {
    part.texts_.set(key, {texts.begin() + begin, texts.begin() + end});
  }
  part.indices_.assign(indices_.begin() + begin, indices_.begin() + end);
  return part;
}

Batch Batch::to(const at::Device& device) const {
  Batch moved = *this;
  for (auto& [key, tensor] : moved.tensors_) {
    if (tensor.device() == device) continue;
    // A copy to the CPU must be complete before its values are read, and no code would wait for it.
    // Only pinned memory is copied to a device while the CPU continues.
    const bool may_overlap = !device.is_cpu() && tensor.device().is_cpu() && tensor.is_pinned();
    tensor = tensor.to(tensor.options().device(device), /*non_blocking=*/may_overlap);
  }
  return moved;
}

Batch Batch::channels_last() const {
  Batch laid_out = *this;
  for (auto& [key, tensor] : laid_out.tensors_) {
    if (tensor.dim() == 4 && tensor.is_floating_point()) {
      tensor = tensor.contiguous(at::MemoryFormat::ChannelsLast);
    }
  }
  return laid_out;
}

Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) {
  if (examples.empty()) throw Error("cannot make a batch of no examples");
  OrderedMap<at::Tensor> tensors;
  OrderedMap<std::vector<std::string>> texts;
  const Example& first = examples.front();
  for (size_t i = 1; i < examples.size(); ++i) {
    for (const auto& [key, value] : examples[i].tensors) {
      if (!first.tensors.contains(key))
        differs(key, indices[0], indices[i], "is only in the second");
    }
    for (const auto& [key, value] : examples[i].texts) {
      if (!first.texts.contains(key)) differs(key, indices[0], indices[i], "is only in the second");
    }
  }
  for (const auto& [key, value] : first.tensors) {
    if (!value.defined()) {
      throw Error(fmt::format("example {}: \"{}\" is an undefined tensor", indices[0], key));
    }
    std::vector<const at::Tensor*> parts;
    for (size_t i = 0; i < examples.size(); ++i) {
      const at::Tensor* part = examples[i].tensors.find(key);
      if (part == nullptr) differs(key, indices[0], indices[i], "is only in the first");
      if (!part->defined() || part->sizes() != value.sizes() ||
          part->scalar_type() != value.scalar_type()) {
        differs(key, indices[0], indices[i],
                fmt::format("is {} in the first and {} in the second", describe_tensor(value),
                            describe_tensor(*part)));
      }
      if (part->device() != value.device()) {
        differs(key, indices[0], indices[i],
                fmt::format("is on {} in the first and on {} in the second", value.device().str(),
                            part->device().str()));
      }
      parts.push_back(part);
    }
    tensors.set(key, stack(parts));
  }
  for (const auto& [key, value] : first.texts) {
    std::vector<std::string> parts;
    for (size_t i = 0; i < examples.size(); ++i) {
      const std::string* part = examples[i].texts.find(key);
      if (part == nullptr) differs(key, indices[0], indices[i], "is only in the first");
      parts.push_back(*part);
    }
    texts.set(key, std::move(parts));
  }
  return {std::move(tensors), std::move(texts), std::move(indices)};
}

}  // namespace stepop
