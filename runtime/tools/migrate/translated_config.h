#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/components/registry.h"
#include "runtime/core/value/value.h"

namespace stepop {

/// The translated config of another program.
struct TranslatedConfig {
  /// A key with another meaning here, or without one.
  struct Note {
    std::string key;   ///< The other program's key: `integrations/wandb`
    std::string text;  ///< `no counterpart yet`
  };

  Value config = Value(Value::Map{});
  /// Keys that only the project's own code reads; the new iterator must read them.
  Value own = Value(Value::Map{});
  std::vector<Note> notes;
  /// Whether an unregistered component is named, and written as a class of this project.
  bool needs_code = false;
  bool trains = true;        ///< A step has an optimizer; otherwise the config is evaluated.
  bool has_images = false;   ///< Its datasets have `image` and `class`.
  bool has_own_data = true;  ///< A dataset is a class of this project.

  void note(std::string key, std::string text);
  /// Sets the key at `path`, and makes the maps on the way.
  void set(std::string_view path, Value value);
};

/// Whether a value switches its key off: null, false, -1, an empty list or map.
bool is_switched_off(const Value& value);

/// A map's value at `key`; null when it is missing or null, or `value` is no map.
const Value* find_in_map(const Value& value, std::string_view key);

bool is_registered(const Catalogue& catalogue, std::string_view name);

/// The registered component of a kind that is known only by name, `injector`; null without one.
const Registration* find_component(std::string_view kind, std::string_view name);

/// The second entry of the row in `table` that begins with `key`; empty when there is none.
template <class Table>
std::string_view find_in(const Table& table, std::string_view key) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.first == key; });
  return found == table.end() ? std::string_view() : found->second;
}

/// Reads the further boolean words of YAML 1.1, which Python programs read: yes, no, on, off.
void read_words_of_truth(Value& value);

}  // namespace stepop
