#pragma once

#include <cstdint>
#include <map>
#include <memory>
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
  /// What else the exact bits depend on: see run/provenance.h. Empty in older checkpoints.
  std::string made_by = {};
  /// The groups of tensors, `model` of `model.fc.weight`, that are networks or their averages.
  /// Empty in older checkpoints.
  std::vector<std::string> networks = {};
  std::string checksum = {};  ///< The checksum of the file that was read.
};

/// The content of a checkpoint without the tensors' values.
struct CheckpointHeader {
  Progress progress;
  std::string config;
  std::vector<SafetensorsEntry> tensors;  ///< In the order of their bytes; tied tensors once.
  uint64_t file_bytes = 0;
};

/// Writes `model-<step>.safetensors` into `folder`, whole or not at all, with its checksum, and
/// returns its path. Tied weights, such as `model.a` and `model.b` with the same memory, are stored
/// once. Throws the same errors as `save_safetensors`.
std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint);

/// Reads a checkpoint; tied tensors share memory. Throws Error with the path when the file cannot
/// be read, is damaged, or belongs to another program.
Checkpoint load_checkpoint(const std::string& path);

/// A tensor as a checkpoint stores it.
struct StoredTensor {
  SafetensorsEntry entry;
  std::shared_ptr<const std::string> bytes;
};

using StoredState = std::map<std::string, StoredTensor>;

/// Reads a checkpoint's tensors as bytes, for programs without LibTorch; tied tensors share them.
/// Throws the same errors as `load_checkpoint`.
StoredState load_stored_state(const std::string& path);

/// Reads only the header, for listings: a few pages, however large the file. The checksum is not
/// checked. Throws the same errors as `load_checkpoint`.
CheckpointHeader read_checkpoint_header(const std::string& path);

/// Reads the whole file without keeping it, and returns what is wrong with it, without the path;
/// nothing when `load_checkpoint` would succeed. Throws ReadError, with the path, when the file
/// exists but cannot be read, which says nothing about its content.
std::optional<std::string> verify_checkpoint(const std::string& path);

/// Reads a checkpoint like `load_checkpoint`, or returns what is wrong with it like
/// `verify_checkpoint`.
std::optional<std::string> try_load_checkpoint(const std::string& path, Checkpoint& checkpoint);

/// The file name of a step's checkpoint.
std::string checkpoint_name(int64_t step);

/// The step of the checkpoint with this file name; nothing for any other name.
std::optional<int64_t> checkpoint_step(std::string_view name);

/// The steps that have a checkpoint in `folder`, ascending; none when the folder does not exist.
/// Throws Error when the folder cannot be read.
std::vector<int64_t> checkpoint_steps(const std::string& folder);

/// Names of tensors that are the same as another tensor: `{second: first}`.
using Aliases = std::map<std::string, std::string>;

/// The key of the aliases in a checkpoint's metadata.
inline constexpr const char* kAliasesKey = "aliases";

/// The tied weights of networks: tensors of `state` that share memory, type, sizes and strides with
/// an earlier tensor of the same tracked object (the name up to its first dot). Each tracked object
/// is stored completely, so that it can be read alone: `ema_model` and `model` share buffers, and
/// both are stored. Tensors without elements are never tied.
Aliases find_aliases(const State& state);

/// The `aliases` in the metadata: a JSON map of texts.
std::string aliases_to_json(const Aliases& aliases);

/// Adds the tensors that `json` names to `state`; each shares the memory of its first tensor.
/// Throws Error when `json` is not a map of texts, a name already exists, or a first tensor is
/// missing.
void add_aliases(State& state, const std::string& json);

}  // namespace stepop
