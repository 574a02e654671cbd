#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace stepop {

/// A program of torch.export as it is in a file: its graph in JSON, and its tensors by their names
/// in the module.
struct ExportedProgram {
  nlohmann::json model;
  /// Parameters, which require gradients as they did in the module, and persistent buffers.
  std::map<std::string, at::Tensor> weights;
  std::map<std::string, at::Tensor> constants;  ///< Other buffers, and constants of the code.
};

/// The compiled passes in a `.pt2` file, as `python -m stepop.eval.export --compile` writes them;
/// models/README.md describes `passes.json`.
struct CompiledContent {
  nlohmann::json passes;
  std::map<std::string, std::string> files;  ///< Bytes by their names in the archive.
};

/// The programs in a `.pt2` file.
struct ExportedFile {
  ExportedProgram program;                    ///< The program `model`.
  std::optional<ExportedProgram> evaluation;  ///< The program `eval`, if there is one.
  std::optional<CompiledContent> compiled;    ///< If it was asked for and is there.
  bool has_compiled = false;                  ///< Whether it is there.
};

/// Reads a file of torch.export.save, or of `python -m stepop.eval.export`, which has a program for
/// each mode. Tensors that share memory in the module share it here. Nothing in the file is run.
/// Throws Error with the path for another file, a damaged one, and one with tensors that only a
/// pickle describes. With `compiled` also the compiled passes, with the checksums of their files.
ExportedFile read_exported(const std::string& path, bool compiled = false);

/// A whole number of 64 bits; larger ones would become other numbers. Throws Error for anything
/// else.
int64_t whole_number(const nlohmann::json& value);

/// What is wrong with a document, without the parser's own numbers of errors.
std::string error_text(const nlohmann::json::exception& error);

/// The type with a number of torch.export's schema. Throws Error for an unknown one.
at::ScalarType exported_type(int64_t number);

}  // namespace stepop
