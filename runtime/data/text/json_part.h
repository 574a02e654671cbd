#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"

namespace stepop {

/// A part of a JSON file that knows its place: errors begin with the file and the place.
class JsonPart {
 public:
  using Json = nlohmann::json;

  JsonPart(std::string file, const Json& value) : file_(std::move(file)), value_(&value) {}

  const Json& value() const { return *value_; }

  Error error(const std::string& message) const {
    return Error(fmt::format("{}: {}{}{}", file_, place_, place_.empty() ? "" : ": ", message));
  }
  Error unsupported(std::string_view what, std::string_view supported) const {
    return error(
        fmt::format("\"{}\" is not supported; supported: {}", shortened(what, 80), supported));
  }

  /// Whether this is a map that has the key with a value other than null.
  bool has(const char* key) const {
    if (!value_->is_object()) return false;
    const auto found = value_->find(key);
    return found != value_->end() && !found->is_null();
  }
  JsonPart at(const char* key) const {
    if (!value_->is_object()) throw expected("a map");
    if (!has(key)) throw error(fmt::format("\"{}\" is missing", key));
    return {file_, *value_->find(key), below(key)};
  }
  std::vector<JsonPart> items() const {
    if (!value_->is_array()) throw expected("a list");
    std::vector<JsonPart> parts;
    for (size_t i = 0; i < value_->size(); ++i) {
      parts.push_back({file_, (*value_)[i], below(std::to_string(i))});
    }
    return parts;
  }

  std::string text() const {
    if (!value_->is_string()) throw expected("a text");
    return value_->get<std::string>();
  }
  std::string text(const char* key) const { return at(key).text(); }
  std::string text(const char* key, const char* fallback) const {
    return has(key) ? text(key) : fallback;
  }
  bool flag(const char* key, bool fallback) const {
    if (!has(key)) return fallback;
    const JsonPart part = at(key);
    if (!part.value().is_boolean()) throw part.expected("true or false");
    return part.value().get<bool>();
  }
  /// A whole number from 0 to `most`.
  int32_t number(int32_t most) const {
    const bool is_whole = value_->is_number_unsigned() || value_->is_number_integer();
    if (is_whole) {
      const auto found = value_->get<int64_t>();
      if (found >= 0 && found <= most) return static_cast<int32_t>(found);
    }
    throw expected(fmt::format("a whole number from 0 to {}", most));
  }

  Error expected(std::string_view what) const {
    return error(fmt::format("expected {}, found {}", what, described()));
  }

 private:
  JsonPart(std::string file, const Json& value, std::string place)
      : file_(std::move(file)), place_(std::move(place)), value_(&value) {}

  std::string below(std::string_view key) const {
    return place_.empty() ? std::string(key) : fmt::format("{}/{}", place_, key);
  }
  std::string described() const {
    if (value_->is_array() || value_->is_object()) {
      return fmt::format("a {} of {}", value_->is_array() ? "list" : "map", value_->size());
    }
    return shortened(value_->dump(-1, ' ', false, Json::error_handler_t::replace), 60);
  }

  std::string file_;
  std::string place_;
  const Json* value_;
};

}  // namespace stepop
