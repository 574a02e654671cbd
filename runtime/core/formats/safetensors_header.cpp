#include "runtime/core/formats/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/json_file.h"

namespace stepop {
namespace {

using Json = nlohmann::json;
using c10::ScalarType;

constexpr const char* kMetadata = "__metadata__";

/// The depth of a list in a tensor's map in the header's map; deeper JSON is no header.
constexpr int kDeepest = 3;

/// LibTorch's own limit: operations throw for more dimensions.
constexpr size_t kMostDimensions = 64;

constexpr std::array<std::pair<ScalarType, std::string_view>, 10> kTypes = {{
    {ScalarType::Float, "F32"},
    {ScalarType::Double, "F64"},
    {ScalarType::Half, "F16"},
    {ScalarType::BFloat16, "BF16"},
    {ScalarType::Char, "I8"},
    {ScalarType::Short, "I16"},
    {ScalarType::Int, "I32"},
    {ScalarType::Long, "I64"},
    {ScalarType::Byte, "U8"},
    {ScalarType::Bool, "BOOL"},
}};

/// Parses JSON and refuses duplicate keys in an object; nlohmann's own parser keeps the last value.
Json parse_header(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) throw Error("the header has lists or maps in too many others");
    keys.resize(static_cast<size_t>(depth) + 1);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(name).second) {
        throw Error(fmt::format("the header names \"{}\" twice", name));
      }
    }
    return true;
  };
  return parse_json(text, "the header", check);
}

/// Types of other programs that are whole bytes wide; their values are not read.
constexpr std::pair<std::string_view, size_t> kUnreadTypes[] = {
    {"U16", 2},     {"U32", 4},     {"U64", 8},         {"C64", 8},        {"F8_E4M3", 1},
    {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"F8_E4M3FNUZ", 1}, {"F8_E5M2FNUZ", 1}};

std::string known_types() {
  std::vector<std::string_view> known;
  for (const auto& entry : kTypes) known.push_back(entry.second);
  return fmt::format("{}", fmt::join(known, ", "));
}

/// Sets the type; returns the size of a number in bytes.
size_t parse_type(const std::string& name, const Json& info, SafetensorsEntry& entry) {
  const auto found = info.find("dtype");
  if (found == info.end() || !found->is_string()) {
    throw Error(fmt::format("tensor \"{}\" has no \"dtype\"", name));
  }
  entry.type_name = found->get<std::string>();
  for (const auto& [type, type_name] : kTypes) {
    if (type_name != entry.type_name) continue;
    entry.type = type;
    return c10::elementSize(type);
  }
  for (const auto& [type_name, bytes] : kUnreadTypes) {
    if (type_name != entry.type_name) continue;
    entry.type = ScalarType::Undefined;
    return bytes;
  }
  throw Error(fmt::format("tensor \"{}\" has the unknown dtype \"{}\"; known are: {}", name,
                          entry.type_name, known_types()));
}

/// The nonnegative integers at `key`.
std::vector<uint64_t> parse_numbers(const std::string& name, const Json& info, const char* key) {
  const auto found = info.find(key);
  bool is_valid = found != info.end() && found->is_array();
  std::vector<uint64_t> numbers;
  for (size_t i = 0; is_valid && i < found->size(); ++i) {
    is_valid = (*found)[i].is_number_unsigned();
    if (is_valid) numbers.push_back((*found)[i].get<uint64_t>());
  }
  if (is_valid) return numbers;
  throw Error(fmt::format(
      "tensor \"{}\" has no \"{}\" that is a list of whole numbers of 0 and more", name, key));
}

/// Counts the bytes of a tensor; false if they overflow 64 bits.
bool count_bytes(const std::vector<uint64_t>& shape, size_t item_size, uint64_t& bytes) {
  constexpr auto kLargest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  bytes = item_size;
  // Other dimensions are checked despite a 0: their product becomes the strides.
  uint64_t strides = item_size;
  for (const uint64_t dimension : shape) {
    if (dimension > kLargest / strides) return false;
    strides *= std::max<uint64_t>(dimension, 1);
    bytes *= dimension;
  }
  return true;
}

SafetensorsEntry parse_entry(const std::string& name, const Json& info) {
  if (!info.is_object()) throw Error(fmt::format("tensor \"{}\" is not described by a map", name));
  SafetensorsEntry entry;
  entry.name = name;
  const size_t item_bytes = parse_type(name, info, entry);
  const std::vector<uint64_t> shape = parse_numbers(name, info, "shape");
  const std::vector<uint64_t> offsets = parse_numbers(name, info, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    throw Error(
        fmt::format("tensor \"{}\" has the data_offsets [{}], expected its begin and its end", name,
                    fmt::join(offsets, ", ")));
  }
  std::tie(entry.begin, entry.end) = std::pair(offsets[0], offsets[1]);
  if (shape.size() > kMostDimensions) {
    throw Error(fmt::format("tensor \"{}\" has {} dimensions, LibTorch allows {}", name,
                            shape.size(), kMostDimensions));
  }
  uint64_t bytes = 0;
  if (!count_bytes(shape, item_bytes, bytes)) {
    throw Error(fmt::format("tensor \"{}\" has the shape [{}], which no memory can hold", name,
                            fmt::join(shape, ", ")));
  }
  if (bytes != entry.end - entry.begin) {
    throw Error(fmt::format("tensor \"{}\" of {} [{}] needs {} bytes, its data_offsets give it {}",
                            name, entry.type_name, fmt::join(shape, ", "), bytes,
                            entry.end - entry.begin));
  }
  for (const uint64_t dimension : shape) entry.shape.push_back(static_cast<int64_t>(dimension));
  return entry;
}

std::map<std::string, std::string> parse_metadata(const Json& json) {
  std::map<std::string, std::string> metadata;
  if (!json.is_object()) throw Error(fmt::format("\"{}\" is not a map of texts", kMetadata));
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) throw Error(fmt::format("the metadata \"{}\" is not a text", key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// Throws unless the entries, sorted by position, fill `data_bytes` exactly.
void check_layout(const std::vector<SafetensorsEntry>& entries, uint64_t data_bytes) {
  uint64_t end = 0;
  std::string before;
  for (const auto& entry : entries) {
    if (entry.begin < end) {
      throw Error(fmt::format("tensors \"{}\" and \"{}\" overlap", before, entry.name));
    }
    if (entry.begin > end) {
      throw Error(fmt::format("{} bytes before tensor \"{}\" belong to no tensor",
                              entry.begin - end, entry.name));
    }
    end = entry.end;
    before = entry.name;
  }
  if (end > data_bytes) {
    throw Error(fmt::format("its tensors take {} bytes, only {} are there: the file is cut short",
                            end, data_bytes));
  }
  if (end < data_bytes) {
    throw Error(
        fmt::format("{} bytes after the last tensor belong to no tensor", data_bytes - end));
  }
}

}  // namespace

std::string unread_type_text(const SafetensorsEntry& entry) {
  return fmt::format(
      "tensor \"{}\" has the dtype \"{}\", which cannot be read; those that can be are: {}",
      entry.name, entry.type_name, known_types());
}

std::string_view safetensors_type_name(ScalarType type) {
  for (const auto& [known, name] : kTypes) {
    if (known == type) return name;
  }
  return {};
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json[kMetadata] = header.metadata;
  for (const auto& entry : header.entries) {
    if (entry.name == kMetadata) {
      throw Error(fmt::format("the name \"{}\" is reserved by the format", kMetadata));
    }
    json[entry.name] = {{"dtype", safetensors_type_name(entry.type)},
                        {"shape", entry.shape},
                        {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::type_error&) {
    throw Error("the names of its tensors and its metadata must be UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kLongestSafetensorsHeader) {
    throw Error(fmt::format("the names, shapes and metadata take {} bytes, the format allows {}",
                            text.size(), kLongestSafetensorsHeader));
  }
  return text;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_bytes) {
  const Json json = parse_header(text);
  if (!json.is_object()) throw Error("the header is not a map");
  SafetensorsHeader header;
  for (const auto& [name, info] : json.items()) {
    if (name == kMetadata) {
      header.metadata = parse_metadata(info);
    } else {
      header.entries.push_back(parse_entry(name, info));
    }
  }
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_layout(header.entries, data_bytes);
  return header;
}

}  // namespace stepop
