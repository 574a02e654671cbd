#include "iterators/extensible/step/inner.h"

#include "runtime/core/base/error.h"

namespace stepop::extensible {

Config config_at(const std::string& path, Value value) {
  const std::vector<std::string> parts = split_path(path);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    Value::Map map;
    map.set(*part, std::move(value));
    value = Value(std::move(map));
  }
  return Config(std::move(value)).at(path);
}

Config inner_params(const Config& params, std::vector<std::pair<std::string, Value>> replaced) {
  Value value = *params.peek();
  Value type = *params.peek("subtype");
  value.as_map().erase("subtype");
  value.as_map().set("type", std::move(type));
  for (auto& [key, other] : replaced) {
    if (const Value* before = params.peek(key)) other.set_origin(before->origin());
    value.as_map().set(key, std::move(other));
  }
  return config_at(params.path(), std::move(value));
}

void check_inner(const Config& inner, const Config& params, const std::vector<std::string>& own) {
  params.claim();
  for (const auto& key : own) inner.has(key);
  for (const char* key :
       {"type", "after", "before", "every", "train", "eval", "no_grad", "no_accum", "weight"}) {
    inner.has(key);
  }
  if (const std::string unknown = inner.root().unknown_keys(); !unknown.empty()) {
    throw UsageError(unknown);
  }
}

}  // namespace stepop::extensible
