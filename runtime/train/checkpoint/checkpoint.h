#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/formats/safetensors_header.h"
#include "runtime/core/formats/state.h"
#include "runtime/train/checkpoint/progress.h"

namespace stepop {

/// A run at one step: what is tracked, and where the run was.
struct Checkpoint {
  State tensors;
  Progress progress;
  std::string config;  ///< The resolved config as YAML.
  /// What the exact bits also depend on: see run/provenance.h. Empty in older checkpoints.
  std::string made_by = {};
  std::string checksum = {};  ///< Of the file that it was read from.
};

/// What is in a checkpoint, without the tensors themselves.
struct CheckpointHeader {
  Progress progress;
  std::string config;
  std::vector<SafetensorsEntry> tensors;  ///< In the order of their bytes; tied ones once.
  uint64_t file_bytes = 0;
};

/// Writes `model-<step>.safetensors` into `folder`, whole or not at all, with its checksum, and
/// returns its path. Tied weights, `model.a` and `model.b` of the same memory, are stored once.
/// Throws as `save_safetensors`.
std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint);

/// Reads a checkpoint; tied tensors share memory. Throws Error with the path when it cannot be
/// read, is damaged, or is another program's.
Checkpoint load_checkpoint(const std::string& path);

/// Reads the header alone, for listings: a few pages, however large the file. The checksum is not
/// checked. Throws as `load_checkpoint`.
CheckpointHeader read_checkpoint_header(const std::string& path);

/// Reads the whole file without keeping it, and returns what is wrong with it, without the path;
/// nothing when `load_checkpoint` would read it. Throws ReadError, with the path, when the file
/// exists but cannot be read, which says nothing about its content.
std::optional<std::string> verify_checkpoint(const std::string& path);

/// Reads a checkpoint as `load_checkpoint` does, or returns what is wrong with it as
/// `verify_checkpoint` does.
std::optional<std::string> try_load_checkpoint(const std::string& path, Checkpoint& checkpoint);

/// The file name of a step's checkpoint.
std::string checkpoint_name(int64_t step);

/// The step whose checkpoint has this file name, or nothing when it is no checkpoint's name.
std::optional<int64_t> checkpoint_step(std::string_view name);

/// The steps that have a checkpoint in `folder`, ascending; none when there is no such folder.
/// Throws Error when there is one that cannot be read.
std::vector<int64_t> checkpoint_steps(const std::string& folder);

/// Names of tensors that are another tensor: `{second: first}`.
using Aliases = std::map<std::string, std::string>;

/// The key of a checkpoint's metadata that holds them.
inline constexpr const char* kAliasesKey = "aliases";

/// The tied weights of networks: tensors of `state` that share memory, type, sizes and strides with
/// an earlier one of the same tracked thing (the name up to its first dot). Each tracked thing is
/// stored complete, so that it can be read alone: `ema_model` and `model` share buffers, and both
/// are stored. Tensors without elements are never tied.
Aliases find_aliases(const State& state);

/// The metadata `aliases`: a JSON map of texts.
std::string aliases_to_json(const Aliases& aliases);

/// Adds the tensors that `json` names to `state`; each shares the memory of its first. Throws Error
/// when `json` is not a map of texts, a name is already there, or a first is missing.
void add_aliases(State& state, const std::string& json);

}  // namespace stepop
