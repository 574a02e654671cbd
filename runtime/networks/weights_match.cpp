#include "runtime/networks/weights_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/measure/tensor_statistics.h"

namespace stepop {
namespace {

std::string type_name(const at::Tensor& tensor) {
  return std::string(c10::getDtypeNames(tensor.scalar_type()).first);
}

/// Nothing when `found` can be copied into `own`, else what differs.
std::optional<std::string> difference(const at::Tensor& found, const at::Tensor& own) {
  if (found.sizes() != own.sizes()) {
    return fmt::format("[{}] in the file, [{}] here", fmt::join(found.sizes(), ", "),
                       fmt::join(own.sizes(), ", "));
  }
  const bool both_float = found.is_floating_point() && own.is_floating_point();
  if (both_float || found.scalar_type() == own.scalar_type()) return std::nullopt;
  return fmt::format("{} in the file, {} here", describe_tensor(found), describe_tensor(own));
}

/// Whether two names stand for one tensor.
bool are_tied(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() > 0 && a.const_data_ptr() == b.const_data_ptr() && a.sizes() == b.sizes();
}

}  // namespace

WeightsMatch match_weights(const State& file, const State& own, const NameRules& rules) {
  WeightsMatch match;
  match.wanted = own.size();
  std::map<std::string, std::string> names;  // of the file, by what they became
  std::vector<bool> is_used(rules.map.size(), false);
  for (const auto& [name, tensor] : file) {
    if (!name.starts_with(rules.prefix)) continue;
    std::string renamed = name.substr(rules.prefix.size());
    for (size_t i = 0; i < rules.map.size(); ++i) {
      const auto& [old_begin, new_begin] = rules.map[i];
      if (!renamed.starts_with(old_begin)) continue;
      renamed = new_begin + renamed.substr(old_begin.size());
      is_used[i] = true;
      break;
    }
    const auto [other, is_new] = names.emplace(renamed, name);
    if (!is_new) {
      throw Error(
          fmt::format("\"{}\" and \"{}\" both become \"{}\"", other->second, name, renamed));
    }
    const auto wanted = own.find(renamed);
    if (wanted == own.end()) {
      match.left_over.push_back(name);
    } else if (const auto problem = difference(tensor, wanted->second)) {
      match.different.push_back(fmt::format("{}: {}", renamed, *problem));
    } else {
      match.fitting.emplace(renamed, tensor);
      if (tensor.scalar_type() != wanted->second.scalar_type()) {
        match.conversions.push_back(type_name(tensor) + " to " + type_name(wanted->second));
      }
    }
  }
  for (const auto& [name, tensor] : own) {
    const auto is_found = [&, &wanted = tensor](const auto& item) {
      return are_tied(own.at(item.first), wanted);
    };
    if (names.contains(name)) continue;
    if (std::any_of(match.fitting.begin(), match.fitting.end(), is_found)) continue;
    match.missing.push_back(name);
  }
  for (size_t i = 0; i < rules.map.size(); ++i) {
    if (!is_used[i]) match.unused.push_back("\"" + rules.map[i].first + "\"");
  }
  return match;
}

std::pair<std::string, size_t> nearest_prefix(const State& file, const State& own) {
  std::map<std::string, size_t> counts;
  for (const auto& [name, tensor] : file) {
    for (size_t begin = 0; begin < name.size(); begin = name.find('.', begin) + 1) {
      if (own.contains(name.substr(begin))) ++counts[name.substr(0, begin)];
      if (name.find('.', begin) == std::string::npos) break;
    }
  }
  std::pair<std::string, size_t> best;
  for (const auto& [prefix, count] : counts) {
    if (count > best.second) best = {prefix, count};
  }
  return best;
}

}  // namespace stepop
