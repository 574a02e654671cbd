#include "runtime/data/class_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <set>
#include <utility>

#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/unicode.h"
#include "runtime/core/components/parameters.h"
#include "runtime/data/dataset.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

constexpr const char* kClassNames = "class_names";
constexpr const char* kTraining = "datasets/train";

/// Folders from a Mac and from Linux may have one name in two forms.
std::string normal_form(const std::string& name) { return nfc(with_replacements(name)); }

/// Equal for names that a reader takes for one.
std::string likeness(const std::string& name) {
  std::string text = lower_case(name);
  while (text.starts_with(' ')) text.erase(0, 1);
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

bool is_in_training(const std::string& path) {
  return path == kTraining || path.starts_with(std::string(kTraining) + "/");
}

/// The place of the names in the config: the prefixes of each Zip around a reader come before its
/// key.
std::string place_of_names(const Config& params, const std::string& key) {
  std::string place = kClassNames;
  const std::string path = params.path();
  const Value* part = params.root().peek();
  bool is_prefix = false;
  for (size_t at = 0; part != nullptr && at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    at = end + 1;
    if (is_prefix) place = join_path(place, name);
    const Value* kind = part->is_map() ? part->as_map().find("class") : nullptr;
    is_prefix = kind != nullptr && *kind == Value("Zip") && name == "datasets";
    part = part->find(name);
  }
  return join_path(place, key);
}

bool is_whole_number(const std::string& name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string in_quotes(const std::string& name) { return '"' + name + '"'; }

}  // namespace

ClassNumbers::ClassNumbers(const Config& params, const std::string& key, FoundClasses found)
    : has_unknown_(found.has_unknown) {
  std::set<std::string> seen;
  for (const auto& name : found.names) {
    std::string normal = normal_form(name);
    if (seen.insert(normal).second) own_.push_back(std::move(normal));
  }
  const Config root = params.root();
  const std::string place = place_of_names(params, key);
  const bool is_training = is_in_training(params.path());
  if (!is_training && found.are_of_training && !root.has(place)) add(root, place);
  if (!is_training && !root.has(place) && root.peek(kTraining) != nullptr) {
    build_training(root, place);
  }
  if (root.has(place)) {
    take(root, place, is_training);
  } else {
    if (is_training) add(root, place);
    names_ = own_;
  }
  for (const auto& name : names_) {
    numbers_.emplace(normal_form(name), static_cast<int64_t>(numbers_.size()));
  }
}

/// Takes the names of the config. The training adds its own to names that this process has found.
void ClassNumbers::take(const Config& root, const std::string& place, bool is_training) {
  const bool is_from_config = !root.peek(place)->origin().file.empty();
  names_ = root.get<std::vector<std::string>>(place);
  origin_ = is_from_config ? root.where(place) : place;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto [other, is_new] = places.emplace(normal_form(names_[i]), i);
    if (is_new) continue;
    throw root.error(place, fmt::format("\"{}\" is there twice, as number {} and {}", names_[i],
                                        other->second, i));
  }
  if (is_training && !is_from_config) {
    for (const auto& name : own_) {
      if (!places.emplace(name, names_.size()).second) continue;
      root.set_default(join_path(place, std::to_string(names_.size())), name);
      names_.push_back(name);
    }
  }
  are_given_ = !is_training || is_from_config;
}

void ClassNumbers::add(const Config& root, const std::string& place) {
  if (!own_.empty()) root.set_default(place, Value::List(own_.begin(), own_.end()));
}

/// Its readers write the names into the config.
void ClassNumbers::build_training(const Config& root, const std::string& place) {
  try {
    datasets().build(root, kTraining);
    if (root.has(place)) return;
    failure_ = fmt::format("{} names no classes of this key", kTraining);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    failure_ = fmt::format("{} cannot be read ({})", kTraining, error_text(error));
  }
}

std::optional<int64_t> ClassNumbers::find(const std::string& name) const {
  auto found = numbers_.find(name);
  if (found == numbers_.end()) found = numbers_.find(normal_form(name));
  if (found != numbers_.end()) return found->second;
  return has_unknown_ ? std::optional(static_cast<int64_t>(names_.size())) : std::nullopt;
}

std::string ClassNumbers::expected() const {
  return fmt::format(
      "a class of the training: {} ({}with \"unknown: id\" any other has the number "
      "{})",
      list_text(names_), origin_.empty() ? "" : origin_ + "; ", names_.size());
}

std::string ClassNumbers::notice(const at::Tensor& numbers) const {
  std::vector<std::string> parts;
  if (!failure_.empty()) {
    parts.push_back(
        fmt::format("the classes of the training are not known, as {}: these are "
                    "numbered by themselves, {}; class_names gives the names of the "
                    "training in their order",
                    failure_, list_text(names_)));
  }
  std::map<std::string, std::string> alike;
  for (const auto& name : names_) {
    const auto [other, is_new] = alike.emplace(likeness(name), name);
    if (is_new) continue;
    parts.push_back(
        fmt::format("the classes {} and {} differ in capitals or in spaces at their "
                    "ends alone",
                    in_quotes(other->second), in_quotes(name)));
  }
  if (numbers.defined()) {
    const auto size = static_cast<int64_t>(names_.size());
    std::vector<bool> is_there(names_.size(), false);
    const at::Tensor all = numbers.to(at::kLong).contiguous();
    const auto* values = all.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < all.numel(); ++i) {
      if (values[i] >= 0 && values[i] < size) is_there[static_cast<size_t>(values[i])] = true;
    }
    std::vector<std::string> missing;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (!is_there[i]) missing.push_back(in_quotes(names_[i]));
    }
    if (!missing.empty()) parts.push_back("no example of " + list_text(missing));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

ClassRenumbering::ClassRenumbering(const Config& params, const std::string& key,
                                   std::vector<std::string> names, std::string file,
                                   bool has_unknown)
    : file_(std::move(file)),
      file_names_(std::move(names)),
      classes_(params, key, {.names = file_names_, .has_unknown = has_unknown}) {
  for (size_t i = 0; i < file_names_.size(); ++i) {
    numbers_.push_back(classes_.find(file_names_[i]));
    is_needed_ = is_needed_ || numbers_.back() != static_cast<int64_t>(i);
    are_others_ = are_others_ && !numbers_.back();
  }
}

int64_t ClassRenumbering::apply(int64_t number) const {
  if (number < 0 || number >= static_cast<int64_t>(numbers_.size())) return number;
  const auto place = static_cast<size_t>(number);
  if (numbers_[place]) return *numbers_[place];
  throw Error(fmt::format("{}: expected {}; found \"{}\", number {}", file_, classes_.expected(),
                          file_names_[place], number));
}

at::Tensor ClassRenumbering::apply(const at::Tensor& numbers) const {
  if (!is_needed_) return numbers;
  at::Tensor all = numbers.to(at::kLong, /*non_blocking=*/false, /*copy=*/true).contiguous();
  auto* values = all.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < all.numel(); ++i) values[i] = apply(values[i]);
  return all.to(numbers.scalar_type());
}

std::string ClassRenumbering::notice(const at::Tensor& numbers) const {
  const std::string text = classes_.notice(numbers);
  return text.empty() ? "" : fmt::format("{}: {}", file_, text);
}

bool read_unknown_classes(const Config& params) {
  const std::string unknown = params.get("unknown", "error");
  if (unknown == "id" || unknown == "error") return unknown == "id";
  throw params.error("unknown", fmt::format("expected error or id, the number after those of the "
                                            "classes; found \"{}\"",
                                            unknown));
}

void add_unknown_classes(Parameters& p, bool& has_unknown, std::string_view about) {
  const Config* config = p.describe({.name = "unknown",
                                     .default_value = "error",
                                     .about = std::string(about),
                                     .type = {.kind = "text", .choices = {"error", "id"}}});
  if (config != nullptr) has_unknown = read_unknown_classes(*config);
}

std::vector<std::string> class_names_of(const Config& config, const std::string& key) {
  const Value* names = config.root().peek(place_of_names(config, key));
  std::vector<std::string> all;
  if (names == nullptr || !names->is_list()) return all;
  for (const auto& name : names->as_list()) {
    all.push_back(name.is_text() ? name.as_text() : name.describe());
  }
  return all;
}

std::string plain_numbers_notice(const Config& params, const std::string& key,
                                 const std::string& advice) {
  const std::vector<std::string> names = class_names_of(params, key);
  size_t other = 0;
  while (other < names.size() && names[other] == std::to_string(other)) ++other;
  if (other == names.size()) return "";
  return fmt::format(
      "{}the whole numbers of \"{}\" are taken as they are: {} is the class {} of "
      "the training{}{}",
      std::ranges::all_of(names, is_whole_number) ? kWarning : "", key, other,
      in_quotes(names[other]), advice.empty() ? "" : "; ", advice);
}

OrderedMap<std::vector<std::string>> all_class_names(const Config& config) {
  OrderedMap<std::vector<std::string>> all;
  for (const auto& leaf : config.root().at(kClassNames).leaves()) {
    const size_t end = leaf.rfind('/');  // of `class/0`
    if (end != std::string::npos && leaf.substr(end) == "/0") {
      const std::string key = leaf.substr(0, end);
      all.set(key, class_names_of(config, key));
    }
  }
  return all;
}

}  // namespace stepop
