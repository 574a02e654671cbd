#include "runtime/core/value/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "runtime/core/base/text.h"
#include "runtime/core/value/yaml_text.h"
#include "runtime/core/value/yaml_writer.h"

namespace stepop {
namespace {

constexpr size_t kMostOfLine = 80;

/// A value in one readable line: flow YAML, except that `2e` needs no quotes.
std::string text_of(const Value& value) {
  const bool is_bare = value.is_text() && !value.as_text().empty() &&
                       plain_scalar(value.as_text()).is_text() &&
                       std::all_of(value.as_text().begin(), value.as_text().end(), [](char c) {
                         return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                                std::string_view("_./+-").find(c) != std::string_view::npos;
                       });
  return is_bare ? value.as_text() : flow_yaml(value);
}

/// `text` from `begin` on, shortened to a line; never cut inside a UTF-8 character.
std::string cut(const std::string& text, size_t begin) {
  begin = cut_position(text, begin);
  return (begin > 0 ? "..." : "") + shortened(text.substr(begin), kMostOfLine);
}

/// The position from which two texts must be shown so that their difference is visible.
size_t first_shown(const std::string& a, const std::string& b) {
  constexpr size_t kContext = 20;
  size_t same = 0;
  while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
  return same < kMostOfLine ? 0 : same - kContext;
}

class DifferenceSearch {
 public:
  void compare(const std::string& path, const Value* before, const Value* now) {
    // A key without a value counts as a missing key.
    if (before != nullptr && before->is_null()) before = nullptr;
    if (now != nullptr && now->is_null()) now = nullptr;
    if (before == nullptr && now == nullptr) return;
    if (before == nullptr || now == nullptr) return one_sided(path, before, now);

    if (before->is_text() && now->is_map()) return compare_component(path, before, now);
    if (before->is_map() && now->is_text()) return compare_component(path, before, now);
    if (before->is_map() && now->is_map()) return compare_maps(path, before, now);
    if (before->is_list() && now->is_list() && before->as_list().size() == now->as_list().size()) {
      for (size_t i = 0; i < now->as_list().size(); ++i) {
        compare(join_path(path, std::to_string(i)), &before->as_list()[i], &now->as_list()[i]);
      }
      return;
    }
    if (!are_equal(*before, *now)) {
      found.push_back({path, text_of(*before), text_of(*now)});
    }
  }

  std::vector<ConfigDifference> found;

 private:
  static bool are_equal(const Value& a, const Value& b) {
    if (a.is_int() && b.is_float()) return static_cast<double>(a.as_int()) == b.as_float();
    if (a.is_float() && b.is_int()) return are_equal(b, a);
    return a == b;
  }

  static const Value* find(const Value* map, const std::string& key) {
    return map != nullptr && map->is_map() ? map->as_map().find(key) : nullptr;
  }

  void compare_maps(const std::string& path, const Value* before, const Value* now) {
    const size_t known = found.size();
    if (before != nullptr) {
      for (const auto& [key, value] : before->as_map()) {
        compare(join_path(path, key), &value, find(now, key));
      }
    }
    if (now != nullptr) {
      for (const auto& [key, value] : now->as_map()) {
        if (find(before, key) == nullptr) compare(join_path(path, key), nullptr, &value);
      }
    }
    // `ema: {}` has no leaf that shows the difference.
    const bool is_one_sided = before == nullptr || now == nullptr;
    if (is_one_sided && found.size() == known) add_one_sided(path, before, now);
  }

  /// `model: LeNet` means the same as `model: {class: LeNet}`.
  void compare_component(const std::string& path, const Value* before, const Value* now) {
    const Value* map = before->is_map() ? before : now;
    if (!map->as_map().contains("class")) {
      found.push_back({path, text_of(*before), text_of(*now)});
      return;
    }
    const Value name(Value::Map{{"class", before->is_map() ? *now : *before}});
    compare_maps(path, before->is_map() ? before : &name, before->is_map() ? &name : now);
  }

  void one_sided(const std::string& path, const Value* before, const Value* now) {
    const Value* there = before != nullptr ? before : now;
    if (there->is_map()) return compare_maps(path, before, now);
    add_one_sided(path, before, now);
  }

  void add_one_sided(const std::string& path, const Value* before, const Value* now) {
    ConfigDifference difference{path, std::nullopt, std::nullopt};
    if (before != nullptr) difference.before = text_of(*before);
    if (now != nullptr) difference.now = text_of(*now);
    found.push_back(std::move(difference));
  }
};

}  // namespace

std::vector<ConfigDifference> differences(const Value& before, const Value& now) {
  DifferenceSearch comparison;
  comparison.compare("", &before, &now);
  return std::move(comparison.found);
}

std::string describe(const std::vector<ConfigDifference>& differences) {
  std::string text;
  for (const auto& [path, before, now] : differences) {
    if (!text.empty()) text += "\n";
    if (before && now) {
      const size_t begin = first_shown(*before, *now);
      text += fmt::format("  {}: {} -> {}", path, cut(*before, begin), cut(*now, begin));
    } else {
      text += fmt::format("  {} {}: {}", now ? "+" : "-", path, cut(now ? *now : *before, 0));
    }
  }
  return text;
}

}  // namespace stepop
