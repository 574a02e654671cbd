#include "runtime/core/formats/safetensors_reader.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

namespace stepop {
namespace {

constexpr uint64_t kLengthBytes = sizeof(uint64_t);
constexpr std::string_view kZipArchive = "PK\x03\x04";

/// The size of a read; its bytes join the checksum while they are still in the processor's cache.
constexpr uint64_t kPieceBytes = 1 << 20;

}  // namespace

size_t find_checksum_digits(std::string_view header) {
  // Within a JSON text, each " has a \ before it, so only the key itself looks like this.
  const std::string key = fmt::format("\"{}\":\"", kChecksumKey);
  const size_t found = header.find(key);
  if (found == std::string_view::npos) return found;
  const size_t begin = found + key.size();
  const bool is_whole =
      begin + Checksum::kDigits < header.size() && header[begin + Checksum::kDigits] == '"';
  return is_whole ? begin : std::string_view::npos;
}

SafetensorsReader::SafetensorsReader(const std::string& path) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) throw Error("it is a folder, not a file");
  // Opening a pipe would wait for a writer.
  if (std::filesystem::is_other(path, failure))
    throw Error("it is a pipe or a device, not a regular file");
  errno = 0;
  file_.open(path, std::ios::binary);
  if (!file_) {
    const int reason = errno;
    const std::string text = "cannot open: " + std::generic_category().message(reason);
    if (reason == ENOENT) throw Error(text);
    throw ReadError(text);
  }
  file_bytes_ = std::filesystem::file_size(path, failure);
  if (failure) throw ReadError("cannot read its size: " + failure.message());

  if (file_bytes_ < kLengthBytes) {
    throw Error(fmt::format("it has {} bytes, too few for a safetensors file", file_bytes_));
  }
  char length[kLengthBytes];
  read(length, kLengthBytes);
  if (std::string_view(length, kZipArchive.size()) == kZipArchive) {
    throw Error(
        "not a safetensors file but a zip archive, such as torch.save writes; "
        "safetensors.torch.save_file(torch.load(...), path) makes one of its tensors");
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, length, kLengthBytes);
  if (header_bytes > kLongestSafetensorsHeader) {
    throw Error(
        fmt::format("not a safetensors file: its first 8 bytes say that the header has {} "
                    "bytes, the format allows {}",
                    header_bytes, kLongestSafetensorsHeader));
  }
  if (header_bytes > file_bytes_ - kLengthBytes) {
    throw Error(fmt::format("its header has {} bytes, only {} are there: the file is cut short",
                            header_bytes, file_bytes_ - kLengthBytes));
  }
  std::string text(header_bytes, '\0');
  read(text.data(), header_bytes);
  header_ = parse_safetensors_header(text, file_bytes_ - kLengthBytes - header_bytes);

  const size_t digits = find_checksum_digits(text);
  if (digits != std::string::npos) text.replace(digits, Checksum::kDigits, Checksum::kDigits, '0');
  checksum_.add({length, kLengthBytes});
  checksum_.add(text);
}

void SafetensorsReader::read(char* target, uint64_t size) {
  errno = 0;
  file_.read(target, static_cast<std::streamsize>(size));
  if (file_) return;
  if (errno == 0) throw Error("it became shorter while it was read");
  throw ReadError("cannot read: " + std::generic_category().message(errno));
}

void SafetensorsReader::read_data(char* target, uint64_t size) {
  std::vector<char> piece(target == nullptr ? std::min(size, kPieceBytes) : 0);
  while (size > 0) {
    const uint64_t count = std::min(size, kPieceBytes);
    char* const begin = target == nullptr ? piece.data() : target;
    read(begin, count);
    checksum_.add({begin, count});
    if (target != nullptr) target += count;
    size -= count;
  }
}

void SafetensorsReader::visit_tensors(
    const std::function<void(const SafetensorsEntry&, const at::Tensor&)>& visit) {
  for (const auto& entry : header_.entries) {
    if (entry.type == at::ScalarType::Undefined) {
      read_data(nullptr, entry.end - entry.begin);
      visit(entry, {});
      continue;
    }
    const at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(entry.type));
    if (entry.end > entry.begin) {
      read_data(static_cast<char*>(tensor.mutable_data_ptr()), entry.end - entry.begin);
    }
    visit(entry, tensor);
  }
}

void SafetensorsReader::check_types() const {
  for (const auto& entry : header_.entries) {
    if (entry.type == at::ScalarType::Undefined) throw Error(unread_type_text(entry));
  }
}

State SafetensorsReader::read_tensors() {
  check_types();
  State tensors;
  visit_tensors([&](const SafetensorsEntry& entry, const at::Tensor& tensor) {
    tensors.emplace(entry.name, tensor);
  });
  return tensors;
}

std::vector<std::string> SafetensorsReader::read_bytes() {
  check_types();
  std::vector<std::string> bytes;
  for (const auto& entry : header_.entries) {
    bytes.emplace_back(entry.end - entry.begin, '\0');
    read_data(bytes.back().data(), bytes.back().size());
  }
  return bytes;
}

void SafetensorsReader::skip_tensors() {
  if (!header_.entries.empty()) read_data(nullptr, header_.entries.back().end);
}

}  // namespace stepop
