#include "runtime/core/value/value.h"

#include <charconv>
#include <cmath>

namespace stepop {

std::string Origin::text() const {
  if (file.empty()) return "default";
  return line > 0 ? file + ":" + std::to_string(line) : file;
}

int64_t count_values(const Value& value) {
  int64_t count = 1;
  if (value.is_list()) {
    for (const auto& item : value.as_list()) count += count_values(item);
  } else if (value.is_map()) {
    for (const auto& [key, item] : value.as_map()) count += count_values(item);
  }
  return count;
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (slash != 0) parts.emplace_back(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
  }
  return parts;
}

std::string join_path(std::string_view parent, std::string_view child) {
  if (parent.empty()) return std::string(child);
  if (child.empty()) return std::string(parent);
  return std::string(parent) + "/" + std::string(child);
}

int64_t list_index(std::string_view text) {
  int64_t index = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (text.empty() || text[0] == '-' || error != std::errc() || end != text.data() + text.size()) {
    return -1;
  }
  return index;
}

const Value* Value::find(std::string_view path) const {
  const Value* value = this;
  for (const auto& part : split_path(path)) {
    if (value->is_map()) {
      value = value->as_map().find(part);
    } else if (value->is_list()) {
      const int64_t index = list_index(part);
      const auto& list = value->as_list();
      value = index >= 0 && index < static_cast<int64_t>(list.size()) ? &list[index] : nullptr;
    } else {
      value = nullptr;
    }
    if (value == nullptr) return nullptr;
  }
  return value;
}

Value* Value::find(std::string_view path) {
  return const_cast<Value*>(std::as_const(*this).find(path));
}

bool Value::operator==(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (is_float() && std::isnan(as_float())) return std::isnan(other.as_float());
  return data_ == other.data_;
}

}  // namespace stepop
