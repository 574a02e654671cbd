#include "runtime/checkpoint/aliases.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "runtime/base/error.h"

namespace stepop {

Aliases find_aliases(const State& state) {
  using Place = std::tuple<std::string, const void*, c10::ScalarType, std::vector<int64_t>,
                           std::vector<int64_t>>;
  std::map<Place, std::string> firsts;
  Aliases aliases;
  for (const auto& [name, tensor] : state) {
    if (!tensor.defined() || tensor.numel() == 0) continue;
    const auto [first, is_new] = firsts.try_emplace(
        Place(name.substr(0, name.find('.')), tensor.const_data_ptr(), tensor.scalar_type(),
              tensor.sizes().vec(), tensor.strides().vec()),
        name);
    if (!is_new) aliases.emplace(name, first->second);
  }
  return aliases;
}

std::string aliases_to_json(const Aliases& aliases) {
  try {
    return nlohmann::json(aliases).dump();
  } catch (const nlohmann::json::type_error&) {
    throw Error("the names of its tensors and its metadata must be UTF-8");
  }
}

void add_aliases(State& state, const std::string& json) {
  Aliases aliases;
  try {
    nlohmann::json::parse(json).get_to(aliases);
  } catch (const nlohmann::json::exception&) {
    throw Error("its aliases are not a map of names");
  }
  const State stored = state;
  for (const auto& [name, first] : aliases) {
    const auto found = stored.find(first);
    if (found == stored.end()) {
      throw Error(fmt::format("tensor \"{}\" is to be \"{}\", which is not there", name, first));
    }
    if (!state.emplace(name, found->second).second) {
      throw Error(
          fmt::format("tensor \"{}\" is there twice, as itself and as \"{}\"", name, first));
    }
  }
}

}  // namespace stepop
