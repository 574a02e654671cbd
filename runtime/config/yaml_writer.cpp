#include "runtime/config/yaml_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "runtime/base/json_text.h"
#include "runtime/config/yaml_scalar.h"
#include "runtime/config/yaml_text.h"

namespace stepop {
namespace {

/// Text that every YAML reader takes for the same text without quotes, in block and in flow style.
/// Those of YAML 1.1, such as PyYAML, read `yes` as a bool and `2026-11-21` as a date.
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

/// Short lists of plain values stand in one line, as people write them.
bool is_flow(const Value& value) {
  if (is_leaf(value)) return true;
  if (value.is_map()) return value.as_map().empty();
  for (const auto& item : value.as_list()) {
    if (!is_leaf(item) && !is_flow(item)) return false;
  }
  return true;
}

void write_block(const Value& value, int indent, std::string& out) {
  const std::string margin(indent, ' ');
  if (value.is_map()) {
    for (const auto& [key, item] : value.as_map()) {
      out += margin + key_text(key) + ":";
      if (is_flow(item)) {
        out += " " + flow_yaml(item) + "\n";
      } else {
        out += "\n";
        write_block(item, indent + 2, out);
      }
    }
    return;
  }
  for (const auto& item : value.as_list()) {
    if (is_flow(item)) {
      out += margin + "- " + flow_yaml(item) + "\n";
    } else {
      std::string nested;
      write_block(item, indent + 2, nested);
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

std::string to_yaml(const Value& value) {
  if (is_flow(value)) return flow_yaml(value) + "\n";
  std::string out;
  write_block(value, 0, out);
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
