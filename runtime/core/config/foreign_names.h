#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/core/config/config.h"

namespace stepop {

/// Keys as people know them from PyTorch, Lightning, Keras, Hugging Face and Hydra, and what does
/// the same here.
struct ForeignNames {
  std::string_view names;    ///< With spaces between: keys at the top, or `*/name` in any map.
  std::string_view example;  ///< YAML of the key here; empty where a flag of the program does it.
  std::string_view note;     ///< What else helps; empty where nothing does.

  /// The key of `example`, `optimizer/lr` of `optimizer: {lr: 1}`; empty without one.
  std::string key() const;
};

std::span<const ForeignNames> foreign_names();
/// The same for classes, of callbacks and hooks most of all.
std::span<const ForeignNames> foreign_classes();

/// What to write in place of the key at `path`: `did you mean "num_epochs"?`; empty for a key that
/// is not known from elsewhere. `is_in_component`: beside a `class`.
std::string foreign_hint(const std::string& path, bool is_in_component);

/// What to write in place of a component of this name, which is none here; empty for another one.
std::string foreign_class_hint(const std::string& name);

/// The message for a key that is not there, by its full path, where a key that nobody has read so
/// far, beside it or at the top, means the same elsewhere; it begins with the place of that. Empty
/// when there is none.
std::string foreign_name_of(const Config& config, const std::string& missing);

/// `; did you mean bfloat16?` for a value of the key `path` that is known from elsewhere, such as
/// `bf16-mixed`; else empty.
std::string foreign_value_hint(std::string_view path, const Value& value);

}  // namespace stepop
