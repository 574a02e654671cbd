#include "runtime/core/value/yaml_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/json_text.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/base/text.h"
#include "runtime/core/value/yaml_scalar.h"
#include "runtime/core/value/yaml_text.h"

namespace stepop {
namespace {

constexpr int64_t kMostShown = 80;  // bytes of a text or a list in a message

/// Whether every YAML reader reads the text as the same text without quotes, in block and in flow
/// style. Readers of YAML 1.1, such as PyYAML, read `yes` as a bool and `2026-11-21` as a date.
bool is_plain(const std::string& text) {
  if (text.empty() || !plain_scalar(text).is_text()) return false;
  const std::string_view letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
  if (text.find_first_not_of(letters) != std::string::npos) return false;
  std::string lower = text;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* word : {"yes", "no", "on", "off"}) {
    if (lower == word) return false;
  }
  const bool starts_like_a_number = text.find_first_of("+-.0123456789") == 0;
  return !starts_like_a_number || text.starts_with("./") || text.starts_with("../");
}

std::string scalar(const Value& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return fmt::format("{}", value.as_int());
  if (value.is_float()) return yaml_float(value.as_float());
  return is_plain(value.as_text()) ? value.as_text() : quoted_yaml(value.as_text());
}

std::string key_text(const std::string& key) { return is_plain(key) ? key : quoted_yaml(key); }

bool is_leaf(const Value& value) { return !value.is_list() && !value.is_map(); }

/// Short lists of plain values are written on one line.
bool is_flow(const Value& value) {
  if (is_leaf(value)) return true;
  if (value.is_map()) return value.as_map().empty();
  for (const auto& item : value.as_list()) {
    if (!is_leaf(item) && !is_flow(item)) return false;
  }
  return true;
}

/// Taken defaults, nested like their paths.
struct Defaults {
  OrderedMap<Defaults> below;
  std::vector<Value> values;
};

Defaults nested(const std::vector<TakenDefault>& defaults) {
  Defaults all;
  for (const auto& [path, values] : defaults) {
    Defaults* place = &all;
    for (const auto& part : split_path(path)) place = &place->below[part];
    place->values = values;
  }
  return all;
}

/// `key: 5  # default`; empty if it would not be a line of YAML. A long line is cut to stay
/// readable.
std::string default_line(const std::string& key, const std::vector<Value>& values) {
  constexpr size_t kMostBytes = 200;
  std::string others;
  for (size_t i = 1; i < values.size(); ++i) {
    others += (i == 1 ? ", elsewhere " : " and ") + shortened(flow_yaml(values[i]), kMostBytes);
  }
  const std::string value = shortened(flow_yaml(values[0]), kMostBytes);
  std::string line = fmt::format("{}: {}  # default{}", key_text(key), value, others);
  return find_bad_byte(line) ? "" : line;
}

/// Writes `key`, which the config lacks, as comments.
void write_missing(const std::string& key, const Defaults& defaults, const std::string& margin,
                   std::string& out) {
  if (!defaults.values.empty()) {
    const std::string line = default_line(key, defaults.values);
    if (!line.empty()) out += margin + line + "\n";
  } else if (!defaults.below.empty()) {
    out += margin + key_text(key) + ":\n";
  }
  for (const auto& [name, item] : defaults.below) write_missing(name, item, margin + "  ", out);
}

/// Writes defaults within a list that is on one line: by their paths, as on the command line.
void write_by_path(const std::string& path, const Defaults& defaults, const std::string& margin,
                   std::string& out) {
  if (!defaults.values.empty()) {
    const std::string line = default_line(path, defaults.values);
    if (!line.empty()) out += margin + line + "\n";
  }
  for (const auto& [key, item] : defaults.below) {
    write_by_path(join_path(path, key), item, margin, out);
  }
}

/// Writes the defaults below a value that is on one line: a component's name, null, a list.
void write_defaults_below(const Value& value, const Defaults* defaults, int indent,
                          std::string& out) {
  if (defaults == nullptr) return;
  const std::string margin = std::string(indent, ' ') + "# ";
  for (const auto& [key, item] : defaults->below) {
    value.is_list() ? write_by_path(key, item, margin, out) : write_missing(key, item, margin, out);
  }
}

void write_block(const Value& value, int indent, const Defaults* defaults, std::string& out) {
  const std::string margin(indent, ' ');
  const auto defaults_of = [&](const std::string& key) {
    return defaults == nullptr ? nullptr : defaults->below.find(key);
  };
  if (value.is_map()) {
    for (const auto& [key, item] : value.as_map()) {
      const Defaults* taken = defaults_of(key);
      out += margin + key_text(key) + ":";
      if (is_flow(item)) {
        out += " " + flow_yaml(item) + "\n";
        const bool stands_for_another = item.is_null() && taken != nullptr &&
                                        !taken->values.empty() && !taken->values[0].is_null();
        if (stands_for_another) write_missing(key, {{}, taken->values}, margin + "# ", out);
        write_defaults_below(item, taken, indent + 2, out);
      } else {
        out += "\n";
        write_block(item, indent + 2, taken, out);
      }
    }
    if (defaults == nullptr) return;
    for (const auto& [key, taken] : defaults->below) {
      if (!value.as_map().contains(key)) write_missing(key, taken, margin + "# ", out);
    }
    return;
  }
  for (size_t i = 0; i < value.as_list().size(); ++i) {
    const Value& item = value.as_list()[i];
    const Defaults* taken = defaults_of(std::to_string(i));
    if (is_flow(item)) {
      out += margin + "- " + flow_yaml(item) + "\n";
      write_defaults_below(item, taken, indent + 2, out);
    } else {
      std::string nested;
      write_block(item, indent + 2, taken, nested);
      out += margin + "- " + nested.substr(indent + 2);
    }
  }
}

}  // namespace

std::string flow_yaml(const Value& value) {
  if (is_leaf(value)) return scalar(value);
  std::string out;
  if (value.is_list()) {
    for (const auto& item : value.as_list()) out += (out.empty() ? "" : ", ") + flow_yaml(item);
    return "[" + out + "]";
  }
  for (const auto& [key, item] : value.as_map()) {
    out += (out.empty() ? "" : ", ") + key_text(key) + ": " + flow_yaml(item);
  }
  return "{" + out + "}";
}

/// Defined beside the writer, as a short list is shown as YAML.
std::string Value::describe() const {
  if (is_list()) {
    const std::string text = count_values(*this) <= kMostShown ? flow_yaml(*this) : "";
    const bool is_short = !text.empty() && std::ssize(text) <= kMostShown;
    return is_short ? text : "a list of " + std::to_string(as_list().size());
  }
  if (is_map()) return "a map";
  if (is_null()) return "nothing (null)";
  if (is_text()) return quoted_yaml(shortened(as_text(), kMostShown));
  if (is_bool()) return as_bool() ? "true" : "false";
  return is_int() ? std::to_string(as_int()) : yaml_float(as_float());
}

std::string to_yaml(const Value& value) {
  if (is_flow(value)) return flow_yaml(value) + "\n";
  std::string out;
  write_block(value, 0, nullptr, out);
  return out;
}

std::string to_yaml(const Value& value, const std::vector<TakenDefault>& defaults) {
  const Defaults all = nested(defaults);
  std::string out;
  if (is_flow(value)) {
    out = flow_yaml(value) + "\n";
    write_defaults_below(value, &all, 0, out);
  } else {
    write_block(value, 0, &all, out);
  }
  return out;
}

std::string without_comments(std::string_view yaml) {
  std::string out;
  while (!yaml.empty()) {
    const size_t end = std::min(yaml.find('\n'), yaml.size() - 1) + 1;
    const std::string_view line = yaml.substr(0, end);
    const size_t first = line.find_first_not_of(' ');
    if (first == std::string_view::npos || line[first] != '#') out += line;
    yaml.remove_prefix(end);
  }
  return out;
}

std::string to_json(const Value& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_float()) return json_number(value.as_float(), NonFiniteJson::kPython);
  if (value.is_text()) return json_text(value.as_text());
  std::string out;
  if (value.is_list()) {
    for (const auto& item : value.as_list()) out += (out.empty() ? "" : ", ") + to_json(item);
    return "[" + out + "]";
  }
  for (const auto& [key, item] : value.as_map()) {
    out += (out.empty() ? "" : ", ") + json_text(key) + ": " + to_json(item);
  }
  return "{" + out + "}";
}

}  // namespace stepop
