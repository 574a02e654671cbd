#include "runtime/core/config/merge.h"

namespace stepop {
namespace {

/// Removes the tags that only a merge understands, and the values tagged for removal.
void clear_merge_tags(Value& value) {
  value.set_merge(Value::Merge::kDefault);
  if (value.is_list()) {
    for (auto& item : value.as_list()) clear_merge_tags(item);
  } else if (value.is_map()) {
    value.as_map().erase_if(
        [](const auto& entry) { return entry.second.merge() == Value::Merge::kRemove; });
    for (auto& [key, item] : value.as_map()) clear_merge_tags(item);
  }
}

}  // namespace

void merge(Value& base, const Value& later) {
  if (later.merge() == Value::Merge::kReplace || !base.is_map() || !later.is_map()) {
    base = later;
    clear_merge_tags(base);
    return;
  }
  base.set_origin(later.origin());
  base.as_map().erase_if([&](const auto& entry) {
    const Value* value = later.as_map().find(entry.first);
    return value != nullptr && value->merge() == Value::Merge::kRemove;
  });
  for (const auto& [key, value] : later.as_map()) {
    if (value.merge() == Value::Merge::kRemove) continue;
    if (Value* old = base.as_map().find(key)) {
      merge(*old, value);
    } else {
      clear_merge_tags(base.as_map().set(key, value));
    }
  }
}

}  // namespace stepop
