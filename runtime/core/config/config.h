#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/value/taken_default.h"
#include "runtime/core/value/value.h"

namespace stepop {

/// A place in a resolved config, with slash-separated paths relative to it. Copies are cheap; they
/// share one tree and one record of the keys that were read. The record finds misspelt keys before
/// a run starts. Any thread may read, such as a worker in a dataset's `get`.
///
/// Types of `get`: bool, int64_t, int, double, std::string, Value, and vectors of int64_t, double
/// and std::string. An int reads as a double; a float without a fraction (1e5) reads as an int.
class Config {
 public:
  Config() : Config(Value(Value::Map{})) {}
  explicit Config(Value root);

  /// The value at `path`. Throws UsageError with the place for a missing key or a wrong type.
  template <class T>
  T get(std::string_view path) const;

  /// The value at `path`, or `fallback` when the key is missing. The saved config shows, as a
  /// comment, which default was taken.
  template <class T>
  T get(std::string_view path, T fallback) const {
    if (has(path)) return get<T>(path);
    note_default(path, value_of(fallback));
    return fallback;
  }
  std::string get(std::string_view path, const char* fallback) const {
    return get<std::string>(path, fallback);
  }

  /// Like `get`; also throws when the number is below `minimum`.
  int64_t get_at_least(std::string_view path, int64_t minimum) const;
  int64_t get_at_least(std::string_view path, int64_t minimum, int64_t fallback) const;
  /// The same with an upper limit, which is beyond any machine.
  int64_t get_between(std::string_view path, int64_t minimum, int64_t maximum,
                      int64_t fallback) const;

  /// The name of a file or folder. A relative name is relative to the config file that has it, or
  /// to the current folder for a name on the command line. From now on the name is absolute, also
  /// in the saved config.
  std::string get_path(std::string_view path) const;

  /// Checks the path and makes it absolute like `get_path`, for a file that is not opened in this
  /// run.
  void declare_path(std::string_view path) const;

  /// Makes the text at `path` absolute like `get_path`, without reading it. The key must exist.
  void resolve_path(std::string_view path) const;

  /// Notes that `file` is opened in place of the file at `path`; the record of a start looks at
  /// `file`.
  void note_opened(std::string_view path, const std::string& file) const;

  /// The files and folders that `get_path` returned, by the paths of their keys.
  std::map<std::string, std::string> opened() const;

  /// Whether the key exists and is not null. Makes the key known, without reading it.
  bool has(std::string_view path) const;

  /// Sets the key at `path` when it is missing; the saved config shows the value. The number behind
  /// the last one of a list appends to it.
  void set_default(std::string_view path, Value value) const;

  /// Notes the value that is used because the key at `path` is missing; `get` notes its default
  /// itself.
  void note_default(std::string_view path, const Value& value) const;

  /// Defaults that were taken so far, in the order of the first reads.
  std::vector<TakenDefault> taken_defaults() const;

  /// The part of the config below `path`, which need not exist.
  Config at(std::string_view path) const;
  Config root() const;

  /// The keys of the map at this place, in order; none if it is no map.
  std::vector<std::string> keys() const;

  /// The paths of all values below this place that are neither a map nor a list with entries, in
  /// order: `lr`, `layers/0`. None for a value without a path below it.
  std::vector<std::string> leaves() const;

  /// Marks everything below `path` as read: for code that reads later, and for free-form maps.
  void claim(std::string_view path = "") const;

  /// The value at `path` without any processing, or null; not recorded as read. Valid until
  /// `set_default` or the first `get_path` of that key changes the config; not for other threads.
  const Value* peek(std::string_view path = "") const;
  const std::string& path() const { return prefix_; }

  /// `configs/digits.yaml:12: optimizer/lr`, the beginning of a message.
  std::string where(std::string_view path = "") const;

  /// A UsageError that begins with `where(path)`. A message `expected ...` without a `found ...`,
  /// and without another sentence, gets the value that is there.
  UsageError error(std::string_view path, const std::string& message) const;

  /// One message for all keys that were never read, one line for each, with the nearest known key;
  /// empty when all keys were read. Keys below `extra` are the user's own.
  std::string unknown_keys() const;

  /// All paths that were passed to `get`, `has` and `claim` so far.
  std::vector<std::string> known_paths() const;

 private:
  struct Shared {
    std::recursive_mutex mutex;  ///< Protects all following members.
    Value root;
    std::set<std::string, std::less<>> known;
    std::set<std::string, std::less<>> claimed;
    std::map<std::string, std::string> opened;
    std::vector<TakenDefault> defaults;
    std::map<std::string, size_t, std::less<>> place_of_default;  ///< In `defaults`, by path.
  };

  template <class T>
  static Value value_of(const T& value) {
    return Value(value);
  }
  template <class T>
  static Value value_of(const std::vector<T>& items) {
    return Value(Value::List(items.begin(), items.end()));
  }

  Config(std::shared_ptr<Shared> shared, std::string prefix)
      : shared_(std::move(shared)), prefix_(std::move(prefix)) {}

  /// Keeps other threads from reading or changing the config during its lifetime.
  std::unique_lock<std::recursive_mutex> lock() const { return std::unique_lock(shared_->mutex); }

  /// Called with `lock` held.
  const Value& read(std::string_view path) const;
  [[noreturn]] void fail_missing(std::string_view path) const;
  /// The unread place of `key`, which is missing in `parent`: above `parent`, or one map too deep.
  std::optional<std::string> wrongly_indented(const std::string& parent,
                                              const std::string& key) const;
  UsageError wrong_type(std::string_view path, const std::string& expected) const;

  std::shared_ptr<Shared> shared_;
  std::string prefix_;
};

template <>
bool Config::get<bool>(std::string_view path) const;
template <>
int64_t Config::get<int64_t>(std::string_view path) const;
template <>
int Config::get<int>(std::string_view path) const;
template <>
double Config::get<double>(std::string_view path) const;
template <>
std::string Config::get<std::string>(std::string_view path) const;
template <>
Value Config::get<Value>(std::string_view path) const;
template <>
std::vector<int64_t> Config::get<std::vector<int64_t>>(std::string_view path) const;
template <>
std::vector<double> Config::get<std::vector<double>>(std::string_view path) const;
template <>
std::vector<std::string> Config::get<std::vector<std::string>>(std::string_view path) const;

}  // namespace stepop
