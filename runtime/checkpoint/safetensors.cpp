#include "runtime/checkpoint/safetensors.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/error.h"

namespace stepop {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors are little-endian; this code copies numbers as they lie in memory");

constexpr uint64_t kLengthBytes = sizeof(uint64_t);

/// The header for `tensors`. The widest types come first, so that every tensor is aligned.
SafetensorsHeader lay_out(const State& tensors) {
  SafetensorsHeader header;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) throw Error(fmt::format("tensor \"{}\" is undefined", name));
    if (safetensors_type_name(tensor.scalar_type()).empty()) {
      throw Error(fmt::format("tensor \"{}\" is of type {}, which the format cannot hold", name,
                              c10::toString(tensor.scalar_type())));
    }
    header.entries.push_back(
        {name, tensor.scalar_type(), tensor.sizes().vec(), 0, tensor.nbytes()});
  }
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return c10::elementSize(a.type) > c10::elementSize(b.type);
  });
  uint64_t begin = 0;
  for (auto& entry : header.entries) {
    entry.begin = begin;
    begin = entry.end += begin;
  }
  return header;
}

/// Reads `size` bytes, which the file was seen to have.
void read(std::ifstream& file, void* target, uint64_t size) {
  errno = 0;
  file.read(static_cast<char*>(target), static_cast<std::streamsize>(size));
  if (file) return;
  throw Error(errno == 0 ? "it became shorter while it was read"
                         : "cannot read: " + std::generic_category().message(errno));
}

SafetensorsFile load(const std::string& path) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) throw Error("it is a folder, not a file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("cannot open: " + std::generic_category().message(errno));
  const uint64_t file_bytes = std::filesystem::file_size(path, failure);
  if (failure) throw Error("cannot read its size: " + failure.message());

  if (file_bytes < kLengthBytes) {
    throw Error(fmt::format("it has {} bytes, too few for a safetensors file", file_bytes));
  }
  uint64_t header_bytes = 0;
  read(file, &header_bytes, kLengthBytes);
  if (header_bytes > kLongestSafetensorsHeader) {
    throw Error(
        fmt::format("not a safetensors file: its first 8 bytes say that the header has {} "
                    "bytes, the format allows {}",
                    header_bytes, kLongestSafetensorsHeader));
  }
  if (header_bytes > file_bytes - kLengthBytes) {
    throw Error(fmt::format("its header has {} bytes, only {} are there: the file is cut short",
                            header_bytes, file_bytes - kLengthBytes));
  }
  std::string text(header_bytes, '\0');
  read(file, text.data(), header_bytes);
  SafetensorsHeader header =
      parse_safetensors_header(text, file_bytes - kLengthBytes - header_bytes);

  SafetensorsFile loaded;
  loaded.metadata = std::move(header.metadata);
  for (const auto& entry : header.entries) {
    at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(entry.type));
    if (entry.end > entry.begin) {
      read(file, tensor.mutable_data_ptr(), entry.end - entry.begin);
    }
    loaded.tensors.emplace(entry.name, std::move(tensor));
  }
  return loaded;
}

}  // namespace

void write_safetensors(AtomicFile& file, const State& tensors,
                       const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header;
  std::string text;
  try {
    header = lay_out(tensors);
    header.metadata = metadata;
    text = format_safetensors_header(header);
  } catch (const Error& error) {
    throw Error(fmt::format("cannot save {}: {}", file.path(), error.what()));
  }
  const uint64_t header_bytes = text.size();
  char length[kLengthBytes];
  std::memcpy(length, &header_bytes, kLengthBytes);
  file.write({length, kLengthBytes});
  file.write(text);
  for (const auto& entry : header.entries) {
    const at::Tensor tensor = tensors.at(entry.name).detach().cpu().contiguous();
    if (tensor.nbytes() == 0) continue;
    file.write({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
  }
}

void save_safetensors(const std::string& path, const State& tensors,
                      const std::map<std::string, std::string>& metadata) {
  AtomicFile file(path);
  write_safetensors(file, tensors, metadata);
  file.commit();
}

SafetensorsFile load_safetensors(const std::string& path) {
  try {
    return load(path);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace stepop
