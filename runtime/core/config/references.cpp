#include "runtime/core/config/references.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/nearest.h"
#include "runtime/core/config/arithmetic.h"
#include "runtime/core/value/yaml_text.h"

namespace stepop {
namespace {

/// The path in `{path}`; empty when `text` is no reference.
std::string reference_path(const std::string& text) {
  const bool is_reference = text.size() > 2 && text.front() == '{' && text.back() == '}' &&
                            text.find_first_of("{} ,:", 1) == text.size() - 1;
  return is_reference ? text.substr(1, text.size() - 2) : "";
}

constexpr std::string_view kEnvironment = "env:";

/// The position after the closing brace of a reference that starts at `begin`: `{path}` or
/// `{env:NAME:default}`. Returns `begin` when there is no reference.
size_t end_of_reference(std::string_view text, size_t begin) {
  if (text[begin] != '{') return begin;
  const bool is_environment = text.substr(begin + 1).starts_with(kEnvironment);
  const size_t end = text.find_first_of(is_environment ? "{}" : "{} ,:", begin + 1);
  const bool is_whole = end != std::string_view::npos && text[end] == '}' && end > begin + 1;
  return is_whole ? end + 1 : begin;
}

/// Whether the whole `text` is `{env:NAME}` or `{env:NAME:default}`.
bool is_environment(const std::string& text) {
  return text.starts_with("{env:") && end_of_reference(text, 0) == text.size();
}

/// The value of `env:NAME` or `env:NAME:default`; adds the name to `variables`.
std::string environment(const std::string& reference, const Value& from, const std::string& path,
                        std::set<std::string>* variables) {
  const size_t begin = kEnvironment.size();
  const size_t end = std::min(reference.find(':', begin), reference.size());
  const std::string name = reference.substr(begin, end - begin);
  if (variables != nullptr) variables->insert(name);
  if (const char* value = std::getenv(name.c_str())) return value;
  if (end < reference.size()) return reference.substr(end + 1);
  throw UsageError(fmt::format(
      "{}: {}: the environment has no variable {}; set it, or give a default: {{env:{}:default}}",
      from.origin().text(), path, name, name));
}

/// Whether resolving may change `text`.
bool has_braces(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "{{" || end_of_reference(text, i) > i) return true;
  }
  return false;
}

/// Doubles each brace.
std::string escaped(const std::string& text) {
  std::string doubled;
  for (const char c : text) doubled.append(c == '{' || c == '}' ? 2 : 1, c);
  return doubled;
}

std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_pair = i + 1 < text.size() && text[i] == text[i + 1];
    if (is_pair && (text[i] == '{' || text[i] == '}')) ++i;
    out += text[i];
  }
  return out;
}

void collect_paths(const Value& value, const std::string& path, std::vector<std::string>& paths) {
  if (!path.empty()) paths.push_back(path);
  if (!value.is_map()) return;
  for (const auto& [key, item] : value.as_map()) collect_paths(item, join_path(path, key), paths);
}

/// Replaces references in place. The target of a reference is resolved first, so that each value is
/// resolved once, whatever the order of the keys.
class References {
 public:
  References(Value& root, std::set<std::string>* variables)
      : root_(root), variables_(variables), values_(count_values(root)) {}

  void resolve(Value& value, const std::string& path, int depth = 0) {
    if (depth > kMaxDepth) {
      throw UsageError(fmt::format("{}: nested deeper than {}", value.origin().text(), kMaxDepth));
    }
    const Level level(levels_);
    if (levels_ > kMostLevels) {
      throw UsageError(
          fmt::format("{}: {}: maps and references lead more than {} deep into one "
                      "another",
                      value.origin().text(), path, kMostLevels));
    }
    if (value.is_list()) {
      auto& list = value.as_list();
      for (size_t i = 0; i < list.size(); ++i) {
        resolve(list[i], join_path(path, std::to_string(i)), depth + 1);
      }
    } else if (value.is_map()) {
      for (auto& [key, item] : value.as_map()) resolve(item, join_path(path, key), depth + 1);
    } else if (value.is_text()) {
      const std::string text = value.as_text();
      if (is_environment(text)) {
        const std::string found =
            environment(text.substr(1, text.size() - 2), value, path, variables_);
        const Origin origin = value.origin();
        Value plain = plain_scalar(found);
        value = (plain.is_text() ? Value(escaped(found)) : std::move(plain)).set_origin(origin);
        return;
      }
      const std::string target = reference_path(text);
      if (target.empty()) {
        if (auto number = calculated(text, value, path)) {
          value = std::move(number->set_origin(value.origin()));
        } else if (auto whole = interpolated(text, value, path)) {
          value = Value(std::move(*whole)).set_origin(value.origin());
        }
        return;
      }
      value = follow(target, value, path);
      resolve(value, path, depth);  // has no references left; checks the depth
    }
  }

 private:
  /// The largest number of nested values in resolution: each needs some of the stack.
  static constexpr int kMostLevels = 5 * kMaxDepth;
  static constexpr size_t kMostBytes = 1'000'000;
  static constexpr int64_t kBytesOfValue = 64;

  /// The number of values that a copy costs; a long text counts as several.
  static int64_t weight(const Value& value) {
    int64_t sum = 1;
    if (value.is_list()) {
      for (const auto& item : value.as_list()) sum += weight(item);
    } else if (value.is_map()) {
      for (const auto& [key, item] : value.as_map()) sum += weight(item);
    } else if (value.is_text()) {
      sum += static_cast<int64_t>(value.as_text().size()) / kBytesOfValue;
    }
    return sum;
  }

  struct Level {
    explicit Level(int& levels) : count(++levels) {}
    ~Level() { --count; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    int& count;
  };

  /// What `{num_epochs} * 2` computes; nothing for another text.
  std::optional<Value> calculated(const std::string& text, const Value& value,
                                  const std::string& path) {
    const auto find = [&](const std::string& reference) {
      if (!reference.starts_with(kEnvironment)) return follow(reference, value, path);
      return plain_scalar(environment(reference, value, path, variables_));
    };
    try {
      return calculate(text, find);
    } catch (const UsageError&) {
      throw;  // of a reference
    } catch (const Error& error) {
      throw UsageError(
          fmt::format("{}: {}: \"{}\" {}", value.origin().text(), path, text, error.what()));
    }
  }

  /// `text` with its references replaced; nothing when it has none.
  std::optional<std::string> interpolated(const std::string& text, const Value& value,
                                          const std::string& path) {
    std::string out;
    bool has_any = false;
    for (size_t i = 0; i < text.size();) {
      const size_t end = text.compare(i, 2, "{{") == 0 ? i + 2 : end_of_reference(text, i);
      const std::string_view part(text.data() + i, std::max<size_t>(end - i, 1));
      const std::string target(part.size() > 2 ? part.substr(1, part.size() - 2) : "");
      i += part.size();
      if (target.empty()) {
        out += part;
      } else if (target.starts_with(kEnvironment)) {
        out += escaped(environment(target, value, path, variables_));
        has_any = true;
      } else if (may_lead(target) || is_mistyped(target, path)) {
        const Value found = follow(target, value, path);
        if (found.is_map() || found.is_list() || found.is_null()) {
          throw UsageError(fmt::format(
              "{}: {}: the reference {{{}}} is inside a longer text and leads to {}: only a text, "
              "a number or a truth value can be inserted there; write {{{{{}}}}} for braces",
              value.origin().text(), path, target, found.describe(), target));
        }
        out += found.is_text() ? found.as_text() : found.describe();
        has_any = true;
      } else {
        out += part;
      }
    }
    if (!has_any) return std::nullopt;
    if (out.size() > kMostBytes) {
      throw UsageError(fmt::format("{}: {}: references that expand to a text of more than {} bytes",
                                   value.origin().text(), path, kMostBytes));
    }
    values_ += static_cast<int64_t>(out.size()) / kBytesOfValue;
    return out;
  }

  /// Whether `target` has a value, or leads through a reference.
  bool may_lead(const std::string& target) const {
    const Value* value = &root_;
    for (const auto& part : split_path(target)) {
      if (value->is_text()) return has_braces(value->as_text());
      value = value->find(part);
      if (value == nullptr) return false;
    }
    return true;
  }

  /// Whether braces that refer to no value were meant as a reference: `{data/rot}/train`.
  bool is_mistyped(const std::string& target, const std::string& path) const {
    constexpr int64_t kMany = 10'000;  // configs written by hand have fewer values
    constexpr size_t kShort = 3;       // a shorter text would be near other keys by chance
    if (target.find('/') != std::string::npos) return true;
    return target.size() > kShort && values_ < kMany && !near(target, path).empty();
  }

  /// The nearest path that `path` could refer to instead of `target`; empty for none.
  std::string near(const std::string& target, const std::string& path) const {
    std::vector<std::string> paths;
    collect_paths(root_, "", paths);
    // A value that contains this reference cannot be its target.
    std::erase_if(paths, [&](const std::string& candidate) {
      return path == candidate || path.starts_with(candidate + "/");
    });
    const auto nearest = nearest_paths(target, paths, 1);
    return nearest.empty() ? "" : nearest[0];
  }

  Value follow(const std::string& target, const Value& from, const std::string& path) {
    const std::string here = fmt::format("{}: {}", from.origin().text(), path);
    if (chain_.size() >= static_cast<size_t>(kMaxDepth)) {
      throw UsageError(fmt::format(
          "{}: the reference {{{}}} is one of more than {} that lead to one another: write the "
          "value out",
          here, target, kMaxDepth));
    }
    const bool is_circle = std::find(chain_.begin(), chain_.end(), path) != chain_.end();
    chain_.push_back(path);
    for (const auto& seen : chain_) {
      // A value that contains a reference to itself has no end.
      if (is_circle || seen == target || seen.starts_with(target + "/")) {
        std::string circle;
        for (const auto& step : chain_) circle += step + " -> ";
        throw UsageError(fmt::format("{}: the reference {{{}}} goes in a circle: {}{}", here,
                                     target, circle, target));
      }
    }
    Value* found = locate(target);
    if (found == nullptr) {
      const std::string nearest = near(target, path);
      throw UsageError(fmt::format("{}: the reference {{{}}} leads nowhere{}", here, target,
                                   nearest.empty() ? "" : ": did you mean {" + nearest + "}?"));
    }
    resolve(*found, target, static_cast<int>(split_path(target).size()));
    values_ += weight(*found);
    if (values_ > kMaxValues) {
      throw UsageError(here + ": references that expand to more than a million values");
    }
    chain_.pop_back();
    return *found;
  }

  /// The value at `path`, even if a part of the path is a reference; or null.
  Value* locate(const std::string& path) {
    Value* value = &root_;
    std::string place;
    for (const auto& part : split_path(path)) {
      if (value->is_text()) resolve(*value, place);
      value = value->find(part);
      if (value == nullptr) return nullptr;
      place = join_path(place, part);
    }
    return value;
  }

  Value& root_;
  std::set<std::string>* variables_;
  std::vector<std::string> chain_;
  int64_t values_;
  int levels_ = 0;
};

void unescape_braces(Value& value) {
  if (value.is_list()) {
    for (auto& item : value.as_list()) unescape_braces(item);
  } else if (value.is_map()) {
    for (auto& [key, item] : value.as_map()) unescape_braces(item);
  } else if (value.is_text() && value.as_text().find("{{") != std::string::npos) {
    const Origin origin = value.origin();
    value = Value(unescaped(value.as_text())).set_origin(origin);
  }
}

}  // namespace

Value escape_references(const Value& root) {
  Value copy = root;
  if (copy.is_list()) {
    for (auto& item : copy.as_list()) item = escape_references(item);
  } else if (copy.is_map()) {
    for (auto& [key, item] : copy.as_map()) item = escape_references(item);
  } else if (copy.is_text()) {
    if (has_braces(copy.as_text())) {
      copy = Value(escaped(copy.as_text())).set_origin(root.origin());
    }
  }
  return copy;
}

void resolve_references(Value& root, std::set<std::string>* variables) {
  References(root, variables).resolve(root, "");
  unescape_braces(root);
}

}  // namespace stepop
