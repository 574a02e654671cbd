#include "runtime/train/networks/init_from.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/formats/weights_file.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/networks/optimizer_in_file.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

constexpr const char* kKey = "init_from";
constexpr const char* kExpected =
    "expected a file of weights, a map {path: weights.safetensors, strict: false}, or a list of "
    "such";

/// `2 float16 to float32, 1 float64 to float32`, or an empty text.
std::string count_conversions(const std::vector<std::string>& conversions) {
  std::map<std::string, int> counts;
  for (const auto& conversion : conversions) ++counts[conversion];
  std::string text;
  for (const auto& [conversion, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, conversion);
  }
  return text;
}

std::string indented(std::string lines) {
  if (lines.ends_with('\n')) lines.pop_back();
  for (size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 3) {
    lines.insert(at + 1, "  ");
  }
  return lines;
}

/// Describes what does not fit, one line per list; each line begins with a newline.
std::string describe_rest(const WeightsMatch& match) {
  std::string text;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty())
      text += fmt::format("\n  {} ({}): {}", what, names.size(), list_text(names));
  };
  add("missing from the file", match.missing);
  add("left over in the file", match.left_over);
  if (!match.different.empty()) {
    text += fmt::format("\n  of another shape or type ({}):{}", match.different.size(),
                        list_lines(match.different, "\n    "));
  }
  add("map: no name begins with", match.unused);
  if (match.nearest.empty()) return text;
  TextTable table({{"missing"}, {"left over, of the same shape"}});
  for (const auto& [missing, left_over] : match.nearest) table.add({missing, left_over});
  return text + "\n  " + indented(table.text());
}

std::string type_name(const at::Tensor& tensor) {
  return std::string(c10::getDtypeNames(tensor.scalar_type()).first);
}

/// Nothing when `found` can be copied into `own`, otherwise the difference.
std::optional<std::string> difference(const at::Tensor& found, const at::Tensor& own) {
  if (found.sizes() != own.sizes()) {
    return fmt::format("[{}] in the file, [{}] here", fmt::join(found.sizes(), ", "),
                       fmt::join(own.sizes(), ", "));
  }
  const bool both_float = found.is_floating_point() && own.is_floating_point();
  if (both_float || found.scalar_type() == own.scalar_type()) return std::nullopt;
  return fmt::format("{} in the file, {} here", describe_tensor(found), describe_tensor(own));
}

/// Whether two names refer to the same tensor.
bool are_tied(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() > 0 && a.const_data_ptr() == b.const_data_ptr() && a.sizes() == b.sizes();
}

/// For each missing name, at most kMostPairs, what is left over in the file, of the same shape and
/// nearest.
std::vector<std::pair<std::string, std::string>> nearest_of(const WeightsMatch& match,
                                                            const State& file, const State& own) {
  constexpr size_t kMostPairs = 20;
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& name : match.missing) {
    std::vector<std::string> alike;
    for (const auto& other : match.left_over) {
      if (file.at(other).sizes() == own.at(name).sizes()) alike.push_back(other);
    }
    if (alike.empty() || pairs.size() >= kMostPairs) continue;
    pairs.emplace_back(name, sorted_by_distance(name, std::move(alike)).front());
  }
  return pairs;
}

}  // namespace

WeightsMatch match_weights(const State& file, const State& own, const NameRules& rules) {
  WeightsMatch match;
  match.wanted = own.size();
  std::map<std::string, std::string> names;  // new name -> name in the file
  std::vector<bool> is_used(rules.map.size(), false);
  for (const auto& [name, tensor] : file) {
    const auto by_rules = name_by_rules(name, rules, &is_used);
    if (!by_rules) continue;
    const std::string& renamed = *by_rules;
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
  match.nearest = nearest_of(match, file, own);
  for (size_t i = 0; i < rules.map.size(); ++i) {
    if (!is_used[i]) match.unused.push_back("\"" + rules.map[i].first + "\"");
  }
  return match;
}

std::pair<std::vector<std::string>, size_t> nearest_prefixes(const State& file, const State& own) {
  std::map<std::string, size_t> counts;
  for (const auto& [name, tensor] : file) {
    for (size_t begin = 0; begin < name.size(); begin = name.find('.', begin) + 1) {
      if (own.contains(name.substr(begin))) ++counts[name.substr(0, begin)];
      if (name.find('.', begin) == std::string::npos) break;
    }
  }
  std::pair<std::vector<std::string>, size_t> best;
  for (const auto& [prefix, count] : counts) {
    if (count > best.second) best = {{}, count};
    if (count == best.second) best.first.push_back(prefix);
  }
  return best;
}

InitFrom::InitFrom(const Config& config, const Networks& networks)
    : config_(config), networks_(networks) {
  if (!config.has(kKey)) return;
  const Value* value = config.peek(kKey);
  if (networks.empty()) {
    throw config.error(kKey, "there is no network to load into; give a model or networks");
  }
  if (!value->is_list()) {
    entries_.push_back(read(kKey));
    return;
  }
  for (size_t i = 0; i < value->as_list().size(); ++i) {
    entries_.push_back(read(fmt::format("{}/{}", kKey, i)));
  }
}

InitFrom::Entry InitFrom::read(const std::string& path) const {
  Entry entry;
  const Value* value = config_.peek(path);
  if (value->is_text()) {
    entry.place = path;
    entry.file = config_.get_path(path);
    entry.network = read_network(Config());
    return entry;
  }
  if (!value->is_map()) {
    throw config_.error(path, fmt::format("{}, found {}", kExpected, value->describe()));
  }
  const Config map = config_.at(path);
  entry.place = join_path(path, "path");
  entry.file = map.get_path("path");
  entry.network = read_network(map);
  if (map.has("prefix")) entry.prefix = map.get<std::string>("prefix");
  entry.strict = map.get("strict", true);
  entry.takes_optimizer = map.get("optimizer", false);
  if (!map.has("map")) return entry;
  const Value rules = map.get<Value>("map");
  if (!rules.is_map()) {
    throw map.error("map", fmt::format("expected the beginnings of names and what they become, "
                                       "such as {{\"old.\": \"new.\"}}, found {}",
                                       rules.describe()));
  }
  for (const auto& [old_begin, new_begin] : rules.as_map()) {
    if (!new_begin.is_text()) {
      throw map.error("map", fmt::format("expected what \"{}\" becomes as a text, found {}",
                                         old_begin, new_begin.describe()));
    }
    entry.map.emplace_back(old_begin, new_begin.as_text());
  }
  return entry;
}

std::string InitFrom::read_network(const Config& map) const {
  const std::vector<std::string> names = networks_.names();
  if (map.has("network")) {
    const auto name = map.get<std::string>("network");
    if (std::find(names.begin(), names.end(), name) != names.end()) return name;
    throw map.error("network", fmt::format("there is no network \"{}\"; there are: {}", name,
                                           fmt::join(sorted_by_distance(name, names), ", ")));
  }
  if (names.size() == 1) return names.front();
  const std::string example = fmt::format("{{path: weights.safetensors, network: {}}}", names[0]);
  throw config_.error(kKey, fmt::format("say for which network the weights are, as in {}; there "
                                        "are: {}",
                                        example, fmt::join(names, ", ")));
}

std::string InitFrom::find_prefix(const Entry& entry, const State& file, const State& own) const {
  const auto [prefixes, count] = nearest_prefixes(file, own);
  const bool has_empty = !prefixes.empty() && prefixes.front().empty();
  if (prefixes.empty() || has_empty || !entry.map.empty()) return "";
  if (prefixes.size() == 1) return prefixes.front();
  throw config_.error(
      entry.place,
      fmt::format("{}: {} names of the network \"{}\" are there with each of these before them: "
                  "{}; say which, as in {{path: ..., prefix: {}}}",
                  entry.file, count, entry.network, list_text(prefixes), prefixes.back()));
}

/// Sets the entry's prefix when it has none.
WeightsMatch InitFrom::match(Entry& entry, const State& own) const {
  const auto failed = [&](const std::string& message) {
    return config_.error(entry.place, message);
  };
  if (!std::filesystem::exists(entry.file)) throw failed("there is no file " + entry.file);
  SafetensorsFile file;
  try {
    file = load_weights(entry.file);
  } catch (const Error& error) {
    throw failed(error.what());
  }
  const auto format = file.metadata.find("format");
  const bool is_ours = format != file.metadata.end() && format->second.starts_with("stepop-");
  const auto aliases = file.metadata.find(kAliasesKey);
  if (!entry.prefix && is_ours) entry.prefix = entry.network + ".";
  if (!entry.prefix) {
    entry.prefix = find_prefix(entry, file.tensors, own);
    entry.is_prefix_found = !entry.prefix->empty();
  }
  WeightsMatch match;
  try {
    if (is_ours && aliases != file.metadata.end()) add_aliases(file.tensors, aliases->second);
    match = match_weights(file.tensors, own, {*entry.prefix, entry.map});
  } catch (const Error& error) {
    throw failed(fmt::format("{}: {}", entry.file, error.what()));
  }
  if (match.fitting.empty()) {
    const auto [prefixes, count] = nearest_prefixes(file.tensors, own);
    const bool is_help = count > 0 && prefixes.front() != *entry.prefix;
    throw failed(fmt::format(
        "{}: none of its {} tensors fits the network \"{}\", which has {}:{}{}", entry.file,
        file.tensors.size(), entry.network, own.size(), describe_rest(match),
        is_help ? fmt::format("\n  with the prefix \"{}\", {} of their names fit; found \"{}\"",
                              prefixes.front(), count, *entry.prefix)
                : ""));
  }
  if (entry.strict && !match.is_whole()) {
    throw failed(fmt::format(
        "{}: {} of the {} tensors of the network \"{}\" fit ({{path: ..., strict: false}} loads "
        "them), these do not:{}",
        entry.file, match.fitting.size(), match.wanted, entry.network, describe_rest(match)));
  }
  return match;
}

bool InitFrom::takes_optimizers() const {
  return std::ranges::any_of(entries_, [](const Entry& entry) { return entry.takes_optimizer; });
}

/// Loads the state of the optimizer that trains the entry's network, and describes it.
std::string InitFrom::load_optimizer(const Entry& entry, const State& own,
                                     const UpdatesByName& updates) const {
  std::set<const void*> tensors;
  for (const auto& [name, tensor] : own) tensors.insert(tensor.const_data_ptr());
  std::vector<std::string> names;
  Update* of_network = nullptr;
  bool trains_more = false;
  for (const auto& [name, update] : updates) {
    const auto is_own = [&](const auto& parameter) {
      return tensors.contains(parameter.second.const_data_ptr());
    };
    const NamedParameters& parameters = update->optimizer().parameters();
    if (std::ranges::none_of(parameters, is_own)) continue;
    names.push_back(name);
    of_network = update.get();
    trains_more = !std::ranges::all_of(parameters, is_own);
  }
  const auto failed = [&](const std::string& message) {
    return config_.error(entry.place, fmt::format("optimizer: true: {}", message));
  };
  if (names.size() != 1) {
    throw failed(fmt::format("the network \"{}\" is trained by {}; it has to be one optimizer",
                             entry.network, names.empty() ? "none" : list_text(names)));
  }
  if (trains_more) {
    throw failed(
        fmt::format("{} trains other networks as well as \"{}\"; the file has the state "
                    "of one",
                    names.front(), entry.network));
  }
  try {
    const OptimizerInFile found = read_optimizer(entry.file, {*entry.prefix, entry.map},
                                                 *networks_.get(entry.network), *of_network);
    of_network->load_state(found.state);
    return fmt::format(", with the state of {}: {} of {} parameters, {} updates", names.front(),
                       found.count, of_network->optimizer().parameters().size(),
                       with_thousands(found.updates));
  } catch (const Error& error) {
    throw failed(error.what());
  }
}

std::string InitFrom::apply(const UpdatesByName* updates) const {
  std::vector<std::pair<State, WeightsMatch>> matches;
  std::vector<Entry> entries = entries_;
  for (auto& entry : entries) {
    State own = networks_.tensors(entry.network);
    WeightsMatch found = match(entry, own);
    matches.emplace_back(std::move(own), std::move(found));
  }
  std::string report;
  const at::NoGradGuard no_grad;
  std::vector<std::string> optimizers(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].takes_optimizer || updates == nullptr) continue;
    optimizers[i] = load_optimizer(entries[i], matches[i].first, *updates);
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& [own, match] = matches[i];
    for (const auto& [name, tensor] : match.fitting) at::Tensor(own.at(name)).copy_(tensor);
    const std::string converted = count_conversions(match.conversions);
    const Entry& entry = entries[i];
    report += fmt::format(
        "{}{}: {} of {} tensors from {}{}{}{}{}", report.empty() ? "" : "\n", entry.network,
        match.fitting.size(), match.wanted, entry.file,
        entry.is_prefix_found ? fmt::format(", by the prefix \"{}\"", *entry.prefix) : "",
        converted.empty() ? "" : ", converted: " + converted, optimizers[i], describe_rest(match));
  }
  return report;
}

}  // namespace stepop
