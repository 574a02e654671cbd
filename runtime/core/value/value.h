#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/core/base/ordered_map.h"

namespace stepop {

/// The origin of a value: a line of a file, or the command line.
struct Origin {
  std::string file;  ///< Empty for a value made in code; `kCommandLine` for the command line.
  int line = 0;      ///< Counted from 1; 0 without a line.

  static constexpr const char* kCommandLine = "command line";

  /// `configs/digits.yaml:12`, `command line`, or `default`.
  std::string text() const;
};

/// One value of a config: null, bool, int, float, text, list or map, with its origin.
class Value {
 public:
  using List = std::vector<Value>;
  using Map = OrderedMap<Value>;

  Value() = default;
  Value(bool value) : data_(value) {}
  Value(int value) : data_(int64_t{value}) {}
  Value(int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(std::string value) : data_(std::move(value)) {}
  Value(List value) : data_(std::move(value)) {}
  Value(Map value) : data_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<int64_t>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_text() const { return std::holds_alternative<std::string>(data_); }
  bool is_list() const { return std::holds_alternative<List>(data_); }
  bool is_map() const { return std::holds_alternative<Map>(data_); }

  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const { return std::get<int64_t>(data_); }
  double as_float() const { return std::get<double>(data_); }
  const std::string& as_text() const { return std::get<std::string>(data_); }
  const List& as_list() const { return std::get<List>(data_); }
  List& as_list() { return std::get<List>(data_); }
  const Map& as_map() const { return std::get<Map>(data_); }
  Map& as_map() { return std::get<Map>(data_); }

  const Origin& origin() const { return origin_; }
  Value& set_origin(Origin origin) {
    origin_ = std::move(origin);
    return *this;
  }

  /// What a later file does with the earlier value, by a YAML tag.
  enum class Merge { kDefault, kReplace, kRemove };
  Merge merge() const { return merge_; }
  void set_merge(Merge merge) { merge_ = merge; }

  /// The value at a slash-separated path, or null. A number is a list's index.
  const Value* find(std::string_view path) const;
  Value* find(std::string_view path);

  /// For a message after "found": `"fast"`, `12`, `[1, 2]`, `a map`. Long texts are cut; of a list
  /// with more than 80 bytes it gives the size, `a list of 300`.
  std::string describe() const;

  /// Equal in type and content; origins do not matter. NaN equals NaN.
  bool operator==(const Value& other) const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Map> data_;
  Origin origin_;
  Merge merge_ = Merge::kDefault;
};

/// The number of values in `value`, including itself.
int64_t count_values(const Value& value);

/// Maps and lists nest at most this deep, so that no input can exhaust the stack.
inline constexpr int kMaxDepth = 200;

/// The limit for a key. A key is written in one line, which a YAML reader must accept even if each
/// byte is escaped.
inline constexpr size_t kMaxKeyBytes = 250;

/// The largest number of values in a config: aliases and references multiply values.
inline constexpr int64_t kMaxValues = 1'000'000;

/// The parts of `a/b/c`. An empty path has none.
std::vector<std::string> split_path(std::string_view path);

/// `a` + `b` -> `a/b`; either may be empty.
std::string join_path(std::string_view parent, std::string_view child);

/// The number if `text` consists of digits only, otherwise -1.
int64_t list_index(std::string_view text);

}  // namespace stepop
