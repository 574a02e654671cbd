#pragma once

#include <string>
#include <vector>

#include "runtime/config/value.h"

namespace stepop {

/// The config of an edflow project (at 317cb1b), as it would be here.
struct FromEdflow {
  /// A key whose meaning is another one, or none.
  struct Note {
    std::string key;   ///< edflow's: `integrations/wandb`
    std::string text;  ///< `no counterpart yet`
  };

  Value config = Value(Value::Map{});
  /// Keys that only the project's own code reads: they are to be read by the new iterator.
  Value own = Value(Value::Map{});
  std::vector<Note> notes;
  /// Something that it names is not registered, and is written as a class of this project.
  bool needs_code = false;
};

/// `class_name` begins the names of classes that are not there: `Denoiser`, `DenoiserNetwork`,
/// `DenoiserData`, as the templates of `stepop new` call them. Throws UsageError for what is no
/// config.
FromEdflow translate_edflow(const Value& edflow, const std::string& class_name);

}  // namespace stepop
