#include "runtime/core/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <utility>

#include "runtime/core/config/config_files.h"

namespace stepop {
namespace {

/// Splits `a/b/c` into `a/b` and `c`.
std::pair<std::string, std::string> parent_and_key(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

/// For a path that is not there, with `~` or a variable that a shell would expand; else empty.
std::string expansion_hint(const std::string& text) {
  const bool is_home = text == "~" || text.starts_with("~/");
  const size_t begin = is_home ? 0 : text.find('$');
  std::error_code failed;
  if (begin == std::string::npos || std::filesystem::exists(text, failed)) return "";
  const bool has_brace = text.compare(begin, 2, "${") == 0;
  const size_t first = begin + (has_brace ? 2 : 1);
  size_t last = first;
  while (last < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[last])) != 0 || text[last] == '_')) {
    ++last;
  }
  const std::string name = is_home ? "HOME" : text.substr(first, last - first);
  if (name.empty() || std::getenv(name.c_str()) == nullptr) return "";
  const size_t end = is_home ? 1 : std::min(last + (has_brace ? 1 : 0), text.size());
  return fmt::format("\"{}\" is not there, and a config does not expand {}: write {}{{env:{}}}{}",
                     text, text.substr(begin, end - begin), text.substr(0, begin), name,
                     text.substr(end));
}

bool is_whole(double number) { return std::floor(number) == number && std::abs(number) < 9.0e15; }

}  // namespace

Config::Config(Value root) : shared_(std::make_shared<Shared>()) {
  shared_->root = std::move(root);
}

Config Config::at(std::string_view path) const { return {shared_, join_path(prefix_, path)}; }
Config Config::root() const { return {shared_, ""}; }

const Value* Config::peek(std::string_view path) const {
  return shared_->root.find(join_path(prefix_, path));
}

bool Config::has(std::string_view path) const {
  const auto guard = lock();
  shared_->known.insert(join_path(prefix_, path));
  const Value* value = peek(path);
  return value != nullptr && !value->is_null();
}

void Config::set_default(std::string_view path, Value value) const {
  const auto guard = lock();
  if (has(path)) return;
  Value* place = &shared_->root;
  for (const auto& part : split_path(join_path(prefix_, path))) {
    if (place->is_null()) *place = Value(Value::Map{});
    if (place->is_list()) {
      const int64_t index = list_index(part);
      const auto size = static_cast<int64_t>(place->as_list().size());
      if (index == size) place->as_list().emplace_back();
      if (index >= 0 && index <= size) {
        place = &place->as_list()[static_cast<size_t>(index)];
        continue;
      }
    }
    if (!place->is_map()) throw error(path, "cannot be set: a key above it is not a map");
    Value* next = place->as_map().find(part);
    place = next != nullptr ? next : &place->as_map().set(part, Value());
  }
  *place = std::move(value);
  shared_->claimed.insert(join_path(prefix_, path));  // no user has misspelt what is in it
}

void Config::note_default(std::string_view path, const Value& value) const {
  constexpr size_t kMostValues = 4;
  const auto guard = lock();
  std::string full = join_path(prefix_, path);
  const auto place = shared_->place_of_default.find(full);
  if (place == shared_->place_of_default.end()) {
    shared_->place_of_default.emplace(full, shared_->defaults.size());
    shared_->defaults.push_back({std::move(full), {value}});
    return;
  }
  auto& values = shared_->defaults[place->second].values;
  const bool is_new = std::find(values.begin(), values.end(), value) == values.end();
  if (is_new && values.size() < kMostValues) values.push_back(value);
}

std::vector<TakenDefault> Config::taken_defaults() const {
  const auto guard = lock();
  return shared_->defaults;
}

std::vector<std::string> Config::keys() const {
  const auto guard = lock();
  std::vector<std::string> names;
  const Value* value = peek();
  if (value == nullptr || !value->is_map()) return names;
  for (const auto& [key, item] : value->as_map()) names.push_back(key);
  return names;
}

std::vector<std::string> Config::leaves() const {
  const auto guard = lock();
  std::vector<std::string> paths;
  const auto collect = [&](const auto& self, const Value& value, const std::string& path) -> void {
    if (value.is_map() && !value.as_map().empty()) {
      for (const auto& [key, item] : value.as_map()) self(self, item, join_path(path, key));
    } else if (value.is_list() && !value.as_list().empty()) {
      for (size_t i = 0; i < value.as_list().size(); ++i) {
        self(self, value.as_list()[i], join_path(path, std::to_string(i)));
      }
    } else if (!path.empty()) {
      paths.push_back(path);
    }
  };
  if (const Value* value = peek(); value != nullptr) collect(collect, *value, "");
  return paths;
}

void Config::claim(std::string_view path) const {
  const auto guard = lock();
  shared_->claimed.insert(join_path(prefix_, path));
}

std::string Config::where(std::string_view path) const {
  const auto guard = lock();
  const std::string full = join_path(prefix_, path);
  // The place of a missing key is the nearest map around it.
  std::string place = full;
  const Value* value = shared_->root.find(place);
  while ((value == nullptr || value->origin().file.empty()) && !place.empty()) {
    place = parent_and_key(place).first;
    value = shared_->root.find(place);
  }
  const std::string origin =
      value == nullptr || value->origin().file.empty() ? "" : value->origin().text();
  if (origin.empty()) return full.empty() ? "config" : full;
  return full.empty() ? origin : origin + ": " + full;
}

UsageError Config::error(std::string_view path, const std::string& message) const {
  const auto guard = lock();
  const Value* value = peek(path);
  const bool is_about_value = message.starts_with("expected ") && value != nullptr;
  const bool adds_value = is_about_value && !value->is_map() &&
                          message.find("found ") == std::string::npos &&
                          message.find(';') == std::string::npos;
  return UsageError(where(path) + ": " + message +
                    (adds_value ? ", found " + value->describe() : ""));
}

const Value& Config::read(std::string_view path) const {
  shared_->known.insert(join_path(prefix_, path));
  if (const Value* value = peek(path)) return *value;
  fail_missing(path);
}

namespace {

/// Whether a text has the digits of a whole number that int64 cannot hold.
bool is_long_number(std::string_view text) {
  constexpr size_t kMostDigits = 19;
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text.size() >= kMostDigits &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Whether a text is numbers with operators between them that are not apart: `20*2`, `20 *2`.
bool is_tight_arithmetic(std::string_view text) {
  if (text.find_first_not_of("0123456789.+-*/() ") != std::string_view::npos) return false;
  const size_t last = text.find_last_of("0123456789");
  for (size_t i = 1; last != std::string_view::npos && i < last; ++i) {
    const bool is_operator = std::string_view("+-*/").find(text[i]) != std::string_view::npos;
    if (is_operator && (text[i - 1] != ' ' || text[i + 1] != ' ')) return true;
  }
  return false;
}

/// What would make a text the number that it was meant to be.
std::string number_hint(const Value& value) {
  if (value.is_text() && is_long_number(value.as_text())) {
    return ": a whole number of more than 64 bits is read as a text; a float is written with an e, "
           "as 1e30";
  }
  if (value.is_text() && is_tight_arithmetic(value.as_text())) {
    return ": operators over references stand between spaces, as in {batch_size} * 2";
  }
  return "";
}

}  // namespace

UsageError Config::wrong_type(std::string_view path, const std::string& expected) const {
  const auto guard = lock();
  const Value& value = *peek(path);
  return error(
      path, fmt::format("expected {}, found {}{}", expected, value.describe(), number_hint(value)));
}

template <>
bool Config::get<bool>(std::string_view path) const {
  const auto guard = lock();
  const Value& value = read(path);
  if (!value.is_bool()) throw wrong_type(path, "true or false");
  return value.as_bool();
}

template <>
int64_t Config::get<int64_t>(std::string_view path) const {
  const auto guard = lock();
  const Value& value = read(path);
  if (value.is_int()) return value.as_int();
  if (!value.is_float() || !is_whole(value.as_float())) throw wrong_type(path, "a whole number");
  return static_cast<int64_t>(value.as_float());
}

template <>
int Config::get<int>(std::string_view path) const {
  const auto guard = lock();
  const auto number = get<int64_t>(path);
  if (number < std::numeric_limits<int>::min() || number > std::numeric_limits<int>::max()) {
    throw wrong_type(path, "a whole number of at most 32 bits");
  }
  return static_cast<int>(number);
}

template <>
double Config::get<double>(std::string_view path) const {
  const auto guard = lock();
  const Value& value = read(path);
  if (value.is_int()) return static_cast<double>(value.as_int());
  if (!value.is_float()) throw wrong_type(path, "a number");
  return value.as_float();
}

template <>
std::string Config::get<std::string>(std::string_view path) const {
  const auto guard = lock();
  const Value& value = read(path);
  if (!value.is_text()) throw wrong_type(path, "text");
  return value.as_text();
}

template <>
Value Config::get<Value>(std::string_view path) const {
  const auto guard = lock();
  claim(path);
  return read(path);
}

namespace {

template <class T>
std::vector<T> read_list(const Config& config, std::string_view path, const std::string& expected) {
  const Value* value = config.peek(path);  // with the caller's lock
  if (value != nullptr && !value->is_list()) {
    throw config.error(path, fmt::format("expected {}, found {}", expected, value->describe()));
  }
  config.claim(path);
  std::vector<T> items;
  const size_t size = value == nullptr ? 0 : value->as_list().size();
  for (size_t i = 0; i < size; ++i) {
    items.push_back(config.get<T>(join_path(path, std::to_string(i))));
  }
  return items;
}

}  // namespace

template <>
std::vector<int64_t> Config::get<std::vector<int64_t>>(std::string_view path) const {
  const auto guard = lock();
  read(path);
  return read_list<int64_t>(*this, path, "a list of whole numbers");
}

template <>
std::vector<double> Config::get<std::vector<double>>(std::string_view path) const {
  const auto guard = lock();
  read(path);
  return read_list<double>(*this, path, "a list of numbers");
}

template <>
std::vector<std::string> Config::get<std::vector<std::string>>(std::string_view path) const {
  const auto guard = lock();
  read(path);
  return read_list<std::string>(*this, path, "a list of texts");
}

int64_t Config::get_at_least(std::string_view path, int64_t minimum) const {
  const auto guard = lock();
  const auto number = get<int64_t>(path);
  if (number < minimum) throw wrong_type(path, fmt::format("{} or more", minimum));
  return number;
}

int64_t Config::get_at_least(std::string_view path, int64_t minimum, int64_t fallback) const {
  if (has(path)) return get_at_least(path, minimum);
  note_default(path, Value(fallback));
  return fallback;
}

int64_t Config::get_between(std::string_view path, int64_t minimum, int64_t maximum,
                            int64_t fallback) const {
  const int64_t number = get_at_least(path, minimum, fallback);
  if (number <= maximum) return number;
  throw error(path, fmt::format("expected {} or less, found {}", maximum, number));
}

void Config::declare_path(std::string_view path) const {
  const auto guard = lock();
  if (get<std::string>(path).empty()) {
    throw error(path, "expected the name of a file or folder, found an empty text");
  }
  resolve_path(path);
}

std::string Config::get_path(std::string_view path) const {
  const auto guard = lock();
  declare_path(path);
  std::string file = peek(path)->as_text();
  shared_->opened.emplace(join_path(prefix_, path), file);
  return file;
}

void Config::note_opened(std::string_view path, const std::string& file) const {
  const auto guard = lock();
  shared_->opened[join_path(prefix_, path)] = file;
}

std::map<std::string, std::string> Config::opened() const {
  const auto guard = lock();
  return shared_->opened;
}

void Config::resolve_path(std::string_view path) const {
  const auto guard = lock();
  namespace fs = std::filesystem;
  Value& value = *shared_->root.find(join_path(prefix_, path));
  if (const std::string hint = expansion_hint(value.as_text()); !hint.empty()) {
    throw error(path, hint);
  }
  if (value.as_text().empty() || fs::path(value.as_text()).is_absolute()) return;
  const Origin origin = value.origin();
  const bool from_file = !origin.file.empty() && origin.file != Origin::kCommandLine;
  const fs::path folder = from_file ? fs::path(folder_of_config(origin.file)) : fs::path();
  value = Value(fs::absolute(folder / value.as_text()).lexically_normal().string());
  value.set_origin(origin);
}

}  // namespace stepop
