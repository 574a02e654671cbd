#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/safetensors_header.h"
#include "runtime/core/formats/state.h"
#include "runtime/core/system/checksum.h"

namespace stepop {

/// A file exists but could not be read, so it is not known whether it is whole.
class ReadError : public Error {
 public:
  using Error::Error;
};

/// An open safetensors file whose header was read and keeps every rule of the format. Each member
/// throws Error, without the path, when the file breaks a rule or is not there, ReadError when it
/// cannot be read.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::string& path);

  const SafetensorsHeader& header() const { return header_; }
  uint64_t file_bytes() const { return file_bytes_; }

  /// Reads every tensor: on the CPU, contiguous. Once, and not after `skip_tensors`.
  State read_tensors();

  /// The same, a tensor at a time: calls `visit` with each in the order of the header. A tensor of
  /// a type that cannot be read, for which `read_tensors` throws, is undefined here.
  void visit_tensors(const std::function<void(const SafetensorsEntry&, const at::Tensor&)>& visit);

  /// Reads the same bytes and keeps none: for the checksum alone.
  void skip_tensors();

  /// The checksum of what was read, as `kChecksumKey` describes it: of the whole file after
  /// `read_tensors` or `skip_tensors`. The digits are those that stand where stepop writes them;
  /// without such digits all bytes count as they are.
  std::string checksum() const { return checksum_.text(); }

 private:
  void read(char* target, uint64_t size);
  /// Reads and adds to the checksum; `target` may be null.
  void read_data(char* target, uint64_t size);

  std::ifstream file_;
  uint64_t file_bytes_ = 0;
  SafetensorsHeader header_;
  Checksum checksum_;
};

/// Where the 16 digits of the checksum begin in a header's JSON, or npos.
size_t find_checksum_digits(std::string_view header);

}  // namespace stepop
