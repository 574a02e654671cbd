#include "runtime/data/views/key_parts.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

/// The key with its prefix. Throws if one of the maps has it already.
template <class A, class B>
std::string free_key(std::string_view prefix, const std::string& key, const A& tensors,
                     const B& texts) {
  std::string whole = std::string(prefix) + key;
  if (tensors.contains(whole) || texts.contains(whole)) {
    throw Error(fmt::format("\"{}\" is there twice, in two datasets that are put together", whole));
  }
  return whole;
}

}  // namespace

void add_part(Example& whole, std::string_view prefix, Example part) {
  for (auto& [key, tensor] : part.tensors) {
    whole.tensors.set(free_key(prefix, key, whole.tensors, whole.texts), std::move(tensor));
  }
  for (auto& [key, text] : part.texts) {
    whole.texts.set(free_key(prefix, key, whole.tensors, whole.texts), std::move(text));
  }
}

void add_part(Batch& whole, std::string_view prefix, const Batch& part) {
  OrderedMap<std::vector<std::string>> texts = whole.texts();
  for (const auto& [key, tensor] : part.tensors()) {
    whole.set(free_key(prefix, key, whole.tensors(), texts), tensor);
  }
  if (part.texts().empty()) return;
  for (const auto& [key, text] : part.texts()) {
    texts.set(free_key(prefix, key, whole.tensors(), texts), text);
  }
  whole = Batch(whole.tensors(), std::move(texts), whole.indices());
}

Example part_below(const Example& whole, std::string_view prefix) {
  Example part;
  for (const auto& [key, tensor] : whole.tensors) {
    if (key.starts_with(prefix)) part.tensors.set(key.substr(prefix.size()), tensor);
  }
  for (const auto& [key, text] : whole.texts) {
    if (key.starts_with(prefix)) part.texts.set(key.substr(prefix.size()), text);
  }
  return part;
}

}  // namespace stepop
