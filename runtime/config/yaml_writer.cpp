#include "runtime/config/yaml_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include "runtime/base/json_text.h"
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

/// A float that reads back as one: with a point, which YAML 1.1 asks for beside an exponent too.
std::string float_text(double number) {
  if (std::isnan(number)) return ".nan";
  if (std::isinf(number)) return number > 0 ? ".inf" : "-.inf";
  std::string text = fmt::format("{}", number);
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

std::string scalar(const Value& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return fmt::format("{}", value.as_int());
  if (value.is_float()) return float_text(value.as_float());
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

std::string quoted_yaml(const std::string& text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::string_view rest = std::string_view(text).substr(i);
    const auto next = rest.size() > 1 ? static_cast<unsigned char>(rest[1]) : 0U;
    if (byte == '"' || byte == '\\') {
      out += fmt::format("\\{}", text[i]);
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xc2 && next < 0xa0 && next >= 0x80) {  // control characters of Latin-1
      out += fmt::format("\\x{:02x}", next);
      i += 1;
    } else if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) {
      out += rest[2] == '\xa8' ? "\\L" : "\\P";  // line and paragraph separator
      i += 2;
    } else if (rest.starts_with("\xef\xbb\xbf")) {  // byte order mark
      out += "\\ufeff";
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out + "\"";
}

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
