#pragma once

#include <map>
#include <string>

#include "runtime/core/formats/state.h"
#include "runtime/core/system/atomic_file.h"

namespace stepop {

/// The contents of a safetensors file.
struct SafetensorsFile {
  State tensors;  ///< On the CPU, contiguous.
  std::map<std::string, std::string> metadata;
};

/// Writes named tensors in the format of Hugging Face's safetensors
/// (https://huggingface.co/docs/safetensors): 8 bytes with the length of the header, little-endian;
/// the header, JSON padded with spaces to a multiple of 8 bytes; the tensors, each contiguous,
/// without gaps. Tensors may be on any device and have any strides; one tensor at a time is copied.
///
/// When `metadata` has the key `checksum`, its value becomes the file's checksum; each tensor that
/// needs a copy is then copied twice.
///
/// Types: float32, float64, float16, bfloat16, int8, int16, int32, int64, uint8, bool. Throws Error
/// for another type, an undefined tensor, the name `__metadata__` and text that is not UTF-8,
/// always before a byte is written. Also throws AtomicFile's errors.
void save_safetensors(const std::string& path, const State& tensors,
                      const std::map<std::string, std::string>& metadata = {});

/// Writes the same into a file that the caller commits.
void write_safetensors(AtomicFile& file, const State& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Throws the Error of `save_safetensors` for an undefined tensor, or a type that the format does
/// not have.
void check_savable(const std::string& path, const State& tensors);

/// Reads a whole safetensors file. Throws Error with the path and the cause for a file that cannot
/// be read, is cut short, or breaks any rule of the format. The checksum is not checked: in other
/// programs' files, the key has another meaning.
SafetensorsFile load_safetensors(const std::string& path);

}  // namespace stepop
