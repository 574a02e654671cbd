#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/safetensors_header.h"
#include "runtime/core/formats/state.h"
#include "runtime/core/system/checksum.h"

namespace stepop {

/// A file exists but could not be read, so it is unknown whether it is complete.
class ReadError : public Error {
 public:
  using Error::Error;
};

/// An open safetensors file whose header was read and keeps every rule of the format. All members
/// throw Error, without the path, when the file breaks a rule or is missing, and ReadError when it
/// cannot be read.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::string& path);

  const SafetensorsHeader& header() const { return header_; }
  uint64_t file_bytes() const { return file_bytes_; }

  /// Reads every tensor: on the CPU, contiguous. May be called once, and not after `skip_tensors`.
  State read_tensors();

  /// The same, a tensor at a time: calls `visit` with each tensor in the order of the header. A
  /// tensor whose type cannot be read is undefined here; `read_tensors` throws for such a tensor.
  void visit_tensors(const std::function<void(const SafetensorsEntry&, const at::Tensor&)>& visit);

  /// Reads the bytes of every tensor, in the order of the header, for programs without LibTorch.
  std::vector<std::string> read_bytes();

  /// Reads the same bytes only for the checksum, and keeps none.
  void skip_tensors();

  /// The checksum of the bytes read so far, as `kChecksumKey` describes it; the whole file's after
  /// `read_tensors` or `skip_tensors`. The digits count as zeros only in the place where stepop
  /// writes them; without such digits, all bytes count unchanged.
  std::string checksum() const { return checksum_.text(); }

 private:
  /// Throws Error for a tensor whose type cannot be read.
  void check_types() const;
  void read(char* target, uint64_t size);
  /// Reads bytes and adds them to the checksum; `target` may be null.
  void read_data(char* target, uint64_t size);

  std::ifstream file_;
  uint64_t file_bytes_ = 0;
  SafetensorsHeader header_;
  Checksum checksum_;
};

/// The position of the checksum's 16 digits in a header's JSON, or npos.
size_t find_checksum_digits(std::string_view header);

}  // namespace stepop
