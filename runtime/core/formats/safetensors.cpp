#include "runtime/core/formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/safetensors_header.h"
#include "runtime/core/formats/safetensors_reader.h"
#include "runtime/core/system/checksum.h"

namespace stepop {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors are little-endian; this code copies numbers as they lie in memory");

void check_tensors(const State& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) throw Error(fmt::format("tensor \"{}\" is undefined", name));
    if (safetensors_type_name(tensor.scalar_type()).empty()) {
      throw Error(fmt::format("tensor \"{}\" is of type {}, which the format cannot hold", name,
                              c10::toString(tensor.scalar_type())));
    }
  }
}

/// The header for `tensors`. The widest types come first, so every tensor is aligned.
SafetensorsHeader lay_out(const State& tensors) {
  check_tensors(tensors);
  SafetensorsHeader header;
  for (const auto& [name, tensor] : tensors) {
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

/// The header as the file has it, after its length.
std::string header_text(const SafetensorsHeader& header) {
  const std::string json = format_safetensors_header(header);
  const uint64_t size = json.size();
  std::string text(sizeof(size), '\0');
  std::memcpy(text.data(), &size, sizeof(size));
  return text + json;
}

/// Passes the bytes of every tensor to `take`, in the order of the file.
template <class Take>
void for_each_data(const SafetensorsHeader& header, const State& tensors, const Take& take) {
  for (const auto& entry : header.entries) {
    const at::Tensor tensor = tensors.at(entry.name).detach().cpu().contiguous();
    if (tensor.nbytes() == 0) continue;
    take(std::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()));
  }
}

}  // namespace

void check_savable(const std::string& path, const State& tensors) {
  try {
    check_tensors(tensors);
  } catch (const Error& error) {
    throw Error(fmt::format("cannot save {}: {}", path, error.what()));
  }
}

void write_safetensors(AtomicFile& file, const State& tensors,
                       const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header;
  std::string text;
  try {
    header = lay_out(tensors);
    header.metadata = metadata;
    const auto checksum = header.metadata.find(kChecksumKey);
    if (checksum != header.metadata.end()) checksum->second.assign(Checksum::kDigits, '0');
    text = header_text(header);
  } catch (const Error& error) {
    throw Error(fmt::format("cannot save {}: {}", file.path(), error.what()));
  }
  if (metadata.contains(kChecksumKey)) {
    Checksum checksum;
    checksum.add(text);
    for_each_data(header, tensors, [&](std::string_view bytes) { checksum.add(bytes); });
    text.replace(find_checksum_digits(text), Checksum::kDigits, checksum.text());
  }
  file.write(text);
  for_each_data(header, tensors, [&](std::string_view bytes) { file.write(bytes); });
}

void save_safetensors(const std::string& path, const State& tensors,
                      const std::map<std::string, std::string>& metadata) {
  AtomicFile file(path);
  write_safetensors(file, tensors, metadata);
  file.commit();
}

SafetensorsFile load_safetensors(const std::string& path) {
  try {
    SafetensorsReader reader(path);
    return {reader.read_tensors(), reader.header().metadata};
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace stepop
