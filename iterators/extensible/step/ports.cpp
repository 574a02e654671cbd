#include "iterators/extensible/step/ports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/train/networks/networks.h"

namespace stepop::extensible {
namespace {

/// One name or a list of names.
std::vector<std::string> names_at(const Config& params, std::string_view key) {
  const Value* value = params.peek(key);
  if (value != nullptr && value->is_list()) {
    auto names = params.get<std::vector<std::string>>(key);
    if (names.empty()) throw params.error(key, "expected the name of a key, found an empty list");
    return names;
  }
  return {params.get<std::string>(key)};
}

}  // namespace

Slot Ports::reads_key(const Config& params, std::string_view key, const std::string& name) {
  const Slot slot = keys_.slot(name);
  reads_.push_back({slot, params.where(key)});
  return slot;
}

Slot Ports::reads(const Config& params, std::string_view key) {
  return reads_key(params, key, params.get<std::string>(key));
}

std::vector<Slot> Ports::reads_all(const Config& params, std::string_view key) {
  std::vector<Slot> slots;
  for (const auto& name : names_at(params, key)) slots.push_back(reads_key(params, key, name));
  return slots;
}

Slot Ports::reads_optional(const Config& params, std::string_view key) {
  return params.has(key) ? reads(params, key) : Slot{};
}

Slot Ports::writes_key(const Config& params, std::string_view key, const std::string& name) {
  const Slot slot = keys_.slot(name);
  writes_.push_back({slot, params.where(key)});
  return slot;
}

Slot Ports::writes(const Config& params, std::string_view key) {
  return writes_key(params, key, params.get<std::string>(key));
}

std::vector<Slot> Ports::writes_all(const Config& params, std::string_view key) {
  std::vector<Slot> slots;
  for (const auto& name : names_at(params, key)) slots.push_back(writes_key(params, key, name));
  return slots;
}

std::shared_ptr<torch::nn::Module> Ports::module(const Config& params, std::string_view key) {
  const auto name = params.get<std::string>(key);
  const auto names = context_.networks.names();
  for (const auto& known : names) {
    if (known == name) return context_.networks.get(name);
  }
  const auto near = nearest_names(name, names, 1);
  throw params.error(key,
                     fmt::format("no network \"{}\"; there are: {}{}", name, fmt::join(names, ", "),
                                 near.empty() ? "" : "; did you mean " + near[0] + "?"));
}

void Ports::fail_type(const Config& params, std::string_view key) const {
  throw params.error(key, fmt::format("the network \"{}\" is not one that can be called from a "
                                      "config: it derives from neither stepop::Network nor "
                                      "stepop::MultiNetwork",
                                      params.get<std::string>(key)));
}

}  // namespace stepop::extensible
