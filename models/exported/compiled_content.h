#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/exported/exported_file.h"

namespace stepop {

/// What a pass takes: a tensor of the network, or an input.
struct CompiledSource {
  std::string tensor = {};  ///< Empty for an input.
  size_t input = 0;
  int64_t type = 0;                 ///< As of exported_type().
  std::vector<int64_t> order = {};  ///< The dimensions, of the largest stride first.
};

/// What a pass returns: a result of the network, or the new value of one of its tensors.
struct CompiledResult {
  std::string tensor = {};  ///< Empty for a result.
  size_t output = 0;
};

/// A gradient of a result, which a backward pass takes.
struct CompiledTangent {
  size_t output = 0;
  std::vector<int64_t> order = {};  ///< As of CompiledSource.
};

/// What a backward pass returns.
struct CompiledGradient {
  size_t source = 0;                  ///< The place of what it is the gradient of.
  std::vector<size_t> tangents = {};  ///< The places of the gradients that it is computed from.
};

/// What a backward pass takes of the forward one.
struct CompiledSaved {
  bool is_source = false;  ///< Else one of the results.
  size_t place = 0;
};

/// The pass of an evaluation, or the two of a training. All places are within bounds.
struct CompiledMode {
  std::vector<CompiledSource> sources;
  std::vector<CompiledResult> results;
  std::vector<std::string> forward;  ///< Names of files, the library first.
  // The rest is empty for an evaluation.
  std::vector<CompiledSaved> saved;
  size_t returned = 0;                      ///< How many tensors the forward pass returns.
  std::vector<CompiledTangent> tangents;    ///< Taken behind what is saved.
  std::vector<CompiledGradient> gradients;  ///< In the order in which it returns them.
  std::vector<std::string> backward;
};

struct CompiledModes {
  CompiledMode training, evaluation;
  std::string precision;
  std::string device;  ///< cpu or cuda
};

/// Checks and reads the description, for networks of so many inputs and outputs. Throws Error for a
/// damaged one; for one of another version, LibTorch, processor or device than those here it says
/// which command compiles again.
CompiledModes read_compiled(const CompiledContent& content, const std::string& path, size_t inputs,
                            size_t outputs);

/// The command that compiles the passes of a file anew, for processors (cpu) or GPUs (cuda).
std::string compile_command(const std::string& path, std::string_view precision = "float32",
                            std::string_view device = "cpu");

}  // namespace stepop
