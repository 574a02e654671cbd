#include "runtime/config/yaml_writer.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/config/yaml_reader.h"

namespace stepop {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += fmt::format("\\{}", c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// Text that a YAML reader takes for the same text without quotes, in block and in flow style.
bool is_plain(const std::string& text) {
  if (text.empty() || !plain_scalar(text).is_text()) return false;
  const std::string_view letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
  if (text.find_first_not_of(letters) != std::string::npos) return false;
  return text.find_first_of("+-.") != 0 || text.starts_with("./") || text.starts_with("../");
}

std::string scalar(const Value& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return fmt::format("{}", value.as_int());
  if (value.is_float()) {
    const double number = value.as_float();
    if (std::isnan(number)) return ".nan";
    if (std::isinf(number)) return number > 0 ? ".inf" : "-.inf";
    std::string text = fmt::format("{}", number);
    // A float without a point or an exponent would read back as an int.
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  return is_plain(value.as_text()) ? value.as_text() : quoted(value.as_text());
}

std::string key_text(const std::string& key) { return is_plain(key) ? key : quoted(key); }

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

}  // namespace stepop
