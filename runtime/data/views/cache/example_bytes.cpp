#include "runtime/data/views/cache/example_bytes.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {
namespace {

constexpr size_t kAlignment = 64;
constexpr uint32_t kMostDimensions = 64;

constexpr std::array kTypes = {at::kByte,   at::kChar,     at::kShort,        at::kInt,
                               at::kLong,   at::kHalf,     at::kFloat,        at::kDouble,
                               at::kBool,   at::kBFloat16, at::kComplexFloat, at::kComplexDouble,
                               at::kUInt16, at::kUInt32,   at::kUInt64};

bool is_known(at::ScalarType type) {
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

size_t aligned(size_t position) { return (position + kAlignment - 1) / kAlignment * kAlignment; }

template <class T>
void append_number(std::string& bytes, T number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_key(std::string& bytes, const std::string& key) {
  append_number(bytes, static_cast<uint32_t>(key.size()));
  bytes += key;
}

/// Reads numbers and texts one after another; `failed` when there are too few bytes.
class Reader {
 public:
  Reader(const char* begin, size_t size) : begin_(begin), size_(size) {}

  template <class T>
  T number() {
    T value = 0;
    if (take(sizeof value)) std::memcpy(&value, begin_ + position_ - sizeof value, sizeof value);
    return value;
  }

  std::string text(uint64_t length) {
    return take(length) ? std::string(begin_ + position_ - length, length) : std::string();
  }

  bool failed() const { return failed_; }

 private:
  bool take(uint64_t count) {
    if (failed_ || count > size_ - position_)
      failed_ = true;
    else
      position_ += count;
    return !failed_;
  }

  const char* begin_;
  size_t size_;
  size_t position_ = 0;
  bool failed_ = false;
};

/// Reads a tensor's description; its values are `bytes[begin + offset ...]`. Empty for an invalid
/// description.
std::optional<at::Tensor> read_tensor(Reader& reader, const at::Tensor& bytes, int64_t begin) {
  const auto type = static_cast<at::ScalarType>(reader.number<uint32_t>() & 0xff);
  const auto dimensions = reader.number<uint32_t>();
  if (reader.failed() || dimensions > kMostDimensions || !is_known(type)) return std::nullopt;
  std::vector<int64_t> shape;
  const auto all = static_cast<uint64_t>(bytes.numel() - begin);
  uint64_t size = c10::elementSize(type);
  bool is_empty = false;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto length = reader.number<int64_t>();
    if (length < 0) return std::nullopt;
    is_empty = is_empty || length == 0;
    if (length > 0 && size > std::numeric_limits<int64_t>::max() / static_cast<uint64_t>(length)) {
      return std::nullopt;
    }
    if (length > 0) size *= static_cast<uint64_t>(length);
    shape.push_back(length);
  }
  if (is_empty) size = 0;
  const auto offset = reader.number<uint64_t>();
  if (reader.failed() || offset % kAlignment != 0 || offset > all || size > all - offset) {
    return std::nullopt;
  }
  auto* data = static_cast<char*>(bytes.data_ptr()) + begin + offset;
  return at::from_blob(
      data, shape, [bytes](void*) {}, at::TensorOptions(type));
}

}  // namespace

void append_example(const Example& example, std::string& bytes) {
  const size_t begin = bytes.size();
  append_number(bytes, static_cast<uint32_t>(example.tensors.size()));
  append_number(bytes, static_cast<uint32_t>(example.texts.size()));
  std::vector<std::pair<size_t, at::Tensor>> values;  // the place of its offset, and the tensor
  for (const auto& [key, tensor] : example.tensors) {
    if (!tensor.defined() || tensor.layout() != at::kStrided || !is_known(tensor.scalar_type())) {
      throw Error(fmt::format("\"{}\" cannot be cached: {}", key,
                              tensor.defined() ? describe_tensor(tensor) : "an undefined tensor"));
    }
    append_key(bytes, key);
    append_number(bytes, static_cast<uint32_t>(tensor.scalar_type()));
    append_number(bytes, static_cast<uint32_t>(tensor.dim()));
    for (const int64_t length : tensor.sizes()) append_number(bytes, length);
    values.emplace_back(bytes.size(), tensor.resolve_conj().resolve_neg().cpu().contiguous());
    append_number(bytes, uint64_t{0});
  }
  for (const auto& [key, text] : example.texts) {
    append_key(bytes, key);
    append_number(bytes, static_cast<uint64_t>(text.size()));
    bytes += text;
  }
  for (const auto& [place, tensor] : values) {
    bytes.resize(begin + aligned(bytes.size() - begin), '\0');
    const uint64_t offset = bytes.size() - begin;
    std::memcpy(bytes.data() + place, &offset, sizeof offset);
    bytes.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  }
}

std::optional<Example> example_in(const at::Tensor& bytes, int64_t begin) {
  Reader reader(static_cast<const char*>(bytes.const_data_ptr()) + begin,
                static_cast<size_t>(bytes.numel() - begin));
  const auto tensors = reader.number<uint32_t>();
  const auto texts = reader.number<uint32_t>();
  Example example;
  for (uint32_t i = 0; i < tensors && !reader.failed(); ++i) {
    const std::string key = reader.text(reader.number<uint32_t>());
    auto tensor = read_tensor(reader, bytes, begin);
    if (!tensor) return std::nullopt;
    example.tensors.set(key, std::move(*tensor));
  }
  for (uint32_t i = 0; i < texts && !reader.failed(); ++i) {
    const std::string key = reader.text(reader.number<uint32_t>());
    example.texts.set(key, reader.text(reader.number<uint64_t>()));
  }
  if (reader.failed()) return std::nullopt;
  return example;
}

int64_t bytes_of(const Example& example) {
  size_t bytes = kAlignment;
  for (const auto& [key, tensor] : example.tensors) {
    bytes += key.size() + kAlignment + aligned(tensor.nbytes());
  }
  for (const auto& [key, text] : example.texts) bytes += key.size() + text.size();
  return static_cast<int64_t>(bytes);
}

}  // namespace stepop
