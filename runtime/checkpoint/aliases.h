#pragma once

#include <map>
#include <string>

#include "runtime/formats/state.h"

namespace stepop {

/// Names of tensors that are another tensor: `{second: first}`.
using Aliases = std::map<std::string, std::string>;

/// The key of a checkpoint's metadata that holds them.
inline constexpr const char* kAliasesKey = "aliases";

/// The tensors of `state` that are the very memory of one before them of the same tracked thing
/// (the name up to its first dot), with its type, sizes and strides: the tied weights of a network.
/// Each thing is complete by itself, so that it can be read alone: `ema_model` and `model` share
/// buffers and have both their own. Tensors without elements are never the same.
Aliases find_aliases(const State& state);

/// The metadata `aliases`: a JSON map of texts.
std::string aliases_to_json(const Aliases& aliases);

/// Adds the tensors that `json` names to `state`; each shares the memory of its first. Throws Error
/// when it is no map of texts, a name is there already, or a first is not.
void add_aliases(State& state, const std::string& json);

}  // namespace stepop
