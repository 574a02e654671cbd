#include "runtime/tools/evaluate/exported_classes.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/core/formats/zip_file.h"
#include "runtime/core/system/mapped_file.h"
#include "runtime/core/value/yaml_reader.h"

namespace stepop {
namespace {

/// The fields of a message of Protocol Buffers, one after another.
class ProtobufFields {
 public:
  explicit ProtobufFields(std::string_view bytes) : rest_(bytes) {}

  /// Moves to the next field; false at the end and for bytes that are no message.
  bool next() {
    const auto tag = varint();
    if (!tag) return false;
    number = *tag >> 3;
    bytes = {};
    switch (*tag & 7) {
      case 0:
        return varint().has_value();
      case 1:
        return take(8);
      case 2: {
        const auto length = varint();
        return length && take(*length);
      }
      case 5:
        return take(4);
      default:
        return false;
    }
  }

  uint64_t number = 0;
  std::string_view bytes;  ///< Of a field that has a length.

 private:
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  bool take(uint64_t size) {
    if (size > rest_.size()) return false;
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
};

/// `metadata_props` of an ONNX ModelProto, a map of texts.
std::string onnx_metadata(std::string_view file, std::string_view name) {
  constexpr uint64_t kMetadata = 14;
  ProtobufFields model(file);
  while (model.next()) {
    if (model.number != kMetadata) continue;
    ProtobufFields entry(model.bytes);
    std::string_view key;
    std::string_view value;
    while (entry.next()) (entry.number == 1 ? key : value) = entry.bytes;
    if (key == name) return std::string(value);
  }
  return "";
}

std::string zip_extra(std::string_view file, const std::string& path) {
  for (const ZipEntry& entry : list_zip(file, path)) {
    if (!entry.name.ends_with("/extra/class_names.json")) continue;
    return entry.is_stored ? std::string(file.substr(entry.begin, entry.size))
                           : unpack_zip_entry(file, entry, path);
  }
  return "";
}

}  // namespace

Value class_names_in_file(const std::string& path) {
  const MappedFile file(path);
  const std::string json = path.ends_with(".onnx") ? onnx_metadata(file.bytes(), "class_names")
                                                   : zip_extra(file.bytes(), path);
  return json.empty() ? Value() : parse_yaml(json, {path, 0});
}

}  // namespace stepop
