#include "runtime/config/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/nearest.h"
#include "runtime/config/yaml_reader.h"

namespace stepop {
namespace {

/// Drops the tags that only a merge understands, and what they remove.
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

[[noreturn]] void fail(const Override& override, const std::string& message) {
  throw UsageError(
      fmt::format("{}: --{}: {}", override.value.origin().text(), override.path, message));
}

/// The child of `parent` that `part` names, made when it is missing.
Value& child(Value& parent, const std::string& part, const Override& override) {
  if (parent.is_list()) {
    auto& list = parent.as_list();
    if (part == "+") return list.emplace_back();
    const int64_t index = list_index(part);
    if (index < 0) {
      fail(override,
           fmt::format("\"{}\" is no place in a list: give a number from 0, or + to append", part));
    }
    if (index >= static_cast<int64_t>(list.size())) {
      fail(override,
           fmt::format("the list has {} elements, counted from 0; + appends one", list.size()));
    }
    return list[index];
  }
  if (parent.is_text()) {
    const Origin origin = parent.origin();
    parent = Value(Value::Map{{"class", Value(parent).set_origin(origin)}}).set_origin(origin);
  }
  if (parent.is_null()) {
    parent = (part == "+" ? Value(Value::List{}) : Value(Value::Map{}))
                 .set_origin(override.value.origin());
    if (part == "+") return parent.as_list().emplace_back();
  }
  if (!parent.is_map()) {
    fail(override, fmt::format("cannot set a key in {}, given at {}", parent.describe(),
                               parent.origin().text()));
  }
  if (part == "+") {
    fail(override, fmt::format("+ appends to a list, found {}, given at {}", parent.describe(),
                               parent.origin().text()));
  }
  if (Value* found = parent.as_map().find(part)) return *found;
  return parent.as_map().set(part, Value());
}

/// The path inside of `{path}`, or empty when `text` is no reference.
std::string reference_path(const std::string& text) {
  const bool is_reference = text.size() > 2 && text.front() == '{' && text.back() == '}' &&
                            text.find_first_of("{} ,:", 1) == text.size() - 1;
  return is_reference ? text.substr(1, text.size() - 2) : "";
}

/// What looks like references inside a longer text; `{{` is a brace.
std::vector<std::string> references_inside(const std::string& text) {
  std::vector<std::string> found;
  for (size_t begin = text.find('{'); begin != std::string::npos; begin = text.find('{', begin)) {
    if (text.compare(begin, 2, "{{") == 0) {
      begin += 2;
      continue;
    }
    const size_t end = text.find_first_of("{} ,:", begin + 1);
    if (end != std::string::npos && text[end] == '}' && end > begin + 1) {
      found.push_back(text.substr(begin + 1, end - begin - 1));
    }
    ++begin;
  }
  return found;
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

/// Replaces references in place. What a reference names is resolved first, so that each value is
/// resolved once, whatever the order of the keys.
class References {
 public:
  explicit References(Value& root) : root_(root), values_(count_values(root)) {}

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
      const std::string target = reference_path(value.as_text());
      if (target.empty()) return check_no_reference_inside(value, path);
      value = follow(target, value, path);
      resolve(value, path, depth);  // holds no reference any more; measures the depth
    }
  }

 private:
  /// Values that are being resolved, in one another: each takes some of the stack.
  static constexpr int kMostLevels = 5 * kMaxDepth;

  struct Level {
    explicit Level(int& levels) : count(++levels) {}
    ~Level() { --count; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    int& count;
  };

  /// A reference is the whole text: one inside a longer text would silently stay as it is.
  void check_no_reference_inside(const Value& value, const std::string& path) const {
    for (const auto& target : references_inside(value.as_text())) {
      const Value* found = root_.find(target);
      if (found == nullptr || found->is_map() || found->is_list() || found->is_null()) continue;
      throw UsageError(fmt::format(
          "{}: {}: {} has the reference {{{}}} inside a longer text, where references are not "
          "replaced: write the text out, or write {{{{{}}}}} for braces",
          value.origin().text(), path, value.describe(), target, target));
    }
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
      // A value that contains the reference to it has no end.
      if (is_circle || seen == target || seen.starts_with(target + "/")) {
        std::string circle;
        for (const auto& step : chain_) circle += step + " -> ";
        throw UsageError(fmt::format("{}: the reference {{{}}} goes in a circle: {}{}", here,
                                     target, circle, target));
      }
    }
    Value* found = locate(target);
    if (found == nullptr) {
      std::vector<std::string> paths;
      collect_paths(root_, "", paths);
      // What holds this reference cannot be its target.
      std::erase_if(paths, [&](const std::string& candidate) {
        return path == candidate || path.starts_with(candidate + "/");
      });
      const auto nearest = nearest_paths(target, paths, 1);
      throw UsageError(fmt::format("{}: the reference {{{}}} leads nowhere{}", here, target,
                                   nearest.empty() ? "" : ": did you mean {" + nearest[0] + "}?"));
    }
    resolve(*found, target, static_cast<int>(split_path(target).size()));
    values_ += count_values(*found);
    if (values_ > kMaxValues) {
      throw UsageError(here + ": references that expand to more than a million values");
    }
    chain_.pop_back();
    return *found;
  }

  /// The value at `path`, also when a part of the way is itself a reference; or null.
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
    const std::string& text = copy.as_text();
    if (!references_inside(text).empty() || text.find("{{") != std::string::npos) {
      std::string doubled;
      for (const char c : text)
        doubled += c == '{' || c == '}' ? std::string(2, c) : std::string(1, c);
      copy = Value(doubled).set_origin(root.origin());
    }
  }
  return copy;
}

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

void apply_overrides(Value& root, std::vector<Override> overrides) {
  std::set<std::vector<std::string>> given;
  for (const auto& override : overrides) {
    const auto parts = split_path(override.path);
    const bool appends = std::find(parts.begin(), parts.end(), "+") != parts.end();
    if (!appends && !given.insert(parts).second) fail(override, "given twice; keep one");
  }
  std::stable_sort(overrides.begin(), overrides.end(), [](const auto& a, const auto& b) {
    return split_path(a.path).size() < split_path(b.path).size();
  });
  for (const auto& override : overrides) {
    const auto parts = split_path(override.path);
    if (parts.empty()) fail(override, "no key given");
    if (parts.size() > kMaxDepth) fail(override, fmt::format("nested deeper than {}", kMaxDepth));
    for (const auto& part : parts) {
      if (part.size() > kMaxKeyBytes) {
        fail(override, fmt::format("a key of {} bytes; {} at most", part.size(), kMaxKeyBytes));
      }
    }
    Value* place = &root;
    for (const auto& part : parts) place = &child(*place, part, override);
    *place = override.value;
  }
}

void resolve_references(Value& root) {
  References(root).resolve(root, "");
  unescape_braces(root);
}

Value resolve_config(const std::vector<std::string>& files, std::vector<Override> overrides) {
  Value root = Value(Value::Map{});
  for (const auto& file : files) merge(root, read_yaml_file(file));
  apply_overrides(root, std::move(overrides));
  resolve_references(root);
  return root;
}

}  // namespace stepop
