#pragma once

#include <map>
#include <string>

#include "runtime/core/formats/state.h"
#include "runtime/core/system/atomic_file.h"

namespace stepop {

/// What a safetensors file holds.
struct SafetensorsFile {
  State tensors;  ///< On the CPU, contiguous.
  std::map<std::string, std::string> metadata;
};

/// Writes named tensors in the format of Hugging Face's safetensors
/// (https://huggingface.co/docs/safetensors): 8 bytes with the length of the header, little-endian;
/// the header, JSON padded with spaces to a multiple of 8 bytes; the tensors, each contiguous,
/// without gaps. Tensors may be on any device and of any strides; one at a time is copied.
///
/// When `metadata` has the key `checksum`, its value becomes the file's; each tensor is then copied
/// twice where it needs a copy.
///
/// Types: float32, float64, float16, bfloat16, int8, int16, int32, int64, uint8, bool. Throws Error
/// for another type, an undefined tensor, the name `__metadata__` and text that is not UTF-8, each
/// before a byte is written, and as AtomicFile does.
void save_safetensors(const std::string& path, const State& tensors,
                      const std::map<std::string, std::string>& metadata = {});

/// The same into a file that the caller commits.
void write_safetensors(AtomicFile& file, const State& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// Throws the Error of `save_safetensors` for a tensor that is undefined or of a type that the
/// format cannot hold.
void check_savable(const std::string& path, const State& tensors);

/// Reads a whole safetensors file. Throws Error with the path and what is wrong for a file that
/// cannot be read, is cut short, or breaks any rule of the format. A checksum is not looked at: in
/// other programs' files it is something else.
SafetensorsFile load_safetensors(const std::string& path);

}  // namespace stepop
