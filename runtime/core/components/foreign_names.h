#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/core/config/config.h"

namespace stepop {

/// Keys that users know from PyTorch, Lightning, Keras, Hugging Face and Hydra, and the keys with
/// the same meaning here.
struct ForeignNames {
  std::string_view names;    ///< Separated by spaces: top-level keys, or `*/name` for any map.
  std::string_view example;  ///< YAML with the key here; empty when a flag replaces it.
  std::string_view note;     ///< Further advice; may be empty.

  /// The key in `example`, such as `optimizer/lr` in `optimizer: {lr: 1}`; empty without an
  /// example.
  std::string key() const;
};

std::span<const ForeignNames> foreign_names();
/// The same for classes, of callbacks and hooks most of all.
std::span<const ForeignNames> foreign_classes();

/// The advice for the key at `path`: `did you mean "num_epochs"?`; empty for a key that is unknown
/// elsewhere too. `is_in_component`: the key is next to a `class`.
std::string foreign_hint(const std::string& path, bool is_in_component);

/// What to write in place of a component of this name, which is none here; empty for another one.
std::string foreign_class_hint(const std::string& name);

/// The message for a key that is not there, by its full path, where a key that nobody has read so
/// far, beside it or at the top, means the same elsewhere; it begins with the place of that. Empty
/// when there is none.
std::string foreign_name_of(const Config& config, const std::string& missing);

/// `; did you mean bfloat16?` if other programs have this value for the key `path`, such as
/// `bf16-mixed`; otherwise empty.
std::string foreign_value_hint(std::string_view path, const Value& value);

}  // namespace stepop
