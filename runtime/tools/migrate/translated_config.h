#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/config/registry.h"
#include "runtime/core/config/value.h"

namespace stepop {

/// A config of another program, as it would be here.
struct TranslatedConfig {
  /// A key whose meaning is another one, or none.
  struct Note {
    std::string key;   ///< The other program's: `integrations/wandb`
    std::string text;  ///< `no counterpart yet`
  };

  Value config = Value(Value::Map{});
  /// Keys that only the project's own code reads: they are to be read by the new iterator.
  Value own = Value(Value::Map{});
  std::vector<Note> notes;
  /// Something that it names is not registered, and is written as a class of this project.
  bool needs_code = false;
  bool has_images = false;   ///< Its datasets give `image` and `class`.
  bool has_own_data = true;  ///< A dataset is a class of this project.

  void note(std::string key, std::string text);
  /// Sets the key at `path`, with the maps that lead there.
  void set(std::string_view path, Value value);
};

/// Whether a value switches something off: null, false, -1, an empty list or map.
bool is_off(const Value& value);

/// The value of a map at `key`; null when it is missing, or null, or `value` is no map.
const Value* find_in_map(const Value& value, std::string_view key);

bool is_registered(const Catalogue& catalogue, std::string_view name);

/// What is registered, of a kind of which only the name is known here: `injector`; null if nothing.
const Registration* find_component(std::string_view kind, std::string_view name);

/// The second entry of the row of `table` that begins with `key`; empty when there is none.
template <class Table>
std::string_view find_in(const Table& table, std::string_view key) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.first == key; });
  return found == table.end() ? std::string_view() : found->second;
}

/// YAML 1.1, which programs in Python read, has more words for truth: yes, no, on, off.
void read_words_of_truth(Value& value);

}  // namespace stepop
