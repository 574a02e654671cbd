#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/data/batch.h"

namespace stepop {

// An example as bytes, for a cache. Little-endian:
//
//   u32 number of tensors, u32 number of texts
//   of each tensor: u32 bytes of its key, the key, u32 type (c10::ScalarType), u32 dimensions,
//                   i64 each length, u64 where its values begin, a multiple of 64
//   of each text:   u32 bytes of its key, the key, u64 bytes of the text, the text
//   the tensors' values

/// Appends the example to `bytes`, whose length is a multiple of 64. Throws Error for a tensor that
/// is not made of plain numbers in memory (sparse, quantized).
void append_example(const Example& example, std::string& bytes);

/// The example in a uint8 tensor [N] from byte `begin`, a multiple of 64; its tensors share the
/// memory. Empty for any bytes that are not an example.
std::optional<Example> example_in(const at::Tensor& bytes, int64_t begin);

/// About how many bytes the example takes.
int64_t bytes_of(const Example& example);

}  // namespace stepop
