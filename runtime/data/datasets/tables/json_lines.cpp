#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/text.h"
#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/formats/json_file.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/system/mapped_file.h"
#include "runtime/core/value/value.h"
#include "runtime/data/class_numbers.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/datasets/tables/float32_loss.h"
#include "runtime/data/keeps_float64.h"
#include "runtime/data/notice.h"
#include "runtime/data/text/json_part.h"
#include "runtime/data/text/text_units.h"

namespace stepop {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostLineBytes = 64'000'000;

/// Lists nest at most this deep.
constexpr size_t kMostDimensions = 16;

/// Appends the items of nested lists of this shape. Throws Error, which begins with `key`, for
/// lists of another shape.
void add_items(const Json& value, std::span<const int64_t> shape, const std::string& key,
               std::vector<const Json*>& items) {
  if (shape.empty() && !value.is_array()) return items.push_back(&value);
  if (shape.empty()) throw JsonPart(key, value).expected("no list, as its neighbour is none");
  if (!value.is_array() || static_cast<int64_t>(value.size()) != shape[0]) {
    throw JsonPart(key, value).expected(fmt::format("a list of {} like its neighbour", shape[0]));
  }
  for (const auto& part : value) add_items(part, shape.subspan(1), key, items);
}

template <class T>
at::Tensor tensor_of_items(const std::vector<const Json*>& items, at::IntArrayRef shape,
                           at::ScalarType type) {
  at::Tensor tensor = at::empty(shape, type);
  T* target = tensor.mutable_data_ptr<T>();
  for (const Json* item : items) {
    *target++ = item->is_null() ? std::numeric_limits<T>::quiet_NaN() : item->get<T>();
  }
  return tensor;
}

/// A number, a boolean or nested lists of them as int64, float32 or bool; with `is_float` numbers
/// as float32, and null as NaN; floats are float64 with `is_wide`. Throws Error, which begins with
/// `key`, for anything else.
at::Tensor json_tensor(const Json& value, bool is_float, bool is_wide, const std::string& key) {
  std::vector<int64_t> shape;
  for (const Json* part = &value; part->is_array(); part = &part->front()) {
    if (shape.size() == kMostDimensions) {
      throw Error(fmt::format("{}: lists nest deeper than {}", key, kMostDimensions));
    }
    shape.push_back(static_cast<int64_t>(part->size()));
    if (part->empty()) break;
  }
  std::vector<const Json*> items;
  add_items(value, shape, key, items);
  if (!is_float && !items.empty() && items[0]->is_boolean()) {
    for (const Json* item : items) {
      if (!item->is_boolean()) throw JsonPart(key, *item).expected("a boolean like its neighbour");
    }
    return tensor_of_items<bool>(items, shape, at::kBool);
  }
  bool is_whole = !is_float;
  for (const Json* item : items) {
    if (is_float && item->is_null()) continue;
    if (!item->is_number()) {
      throw JsonPart(key, *item)
          .expected(item->is_null() ? "a value; \"floats\" reads null as NaN" : "a number");
    }
    is_whole = is_whole && item->is_number_integer();
    const bool is_too_large =
        item->is_number_unsigned() && !std::in_range<int64_t>(item->get<uint64_t>());
    if ((is_too_large && !is_float) || !std::isfinite(item->get<float>())) {
      throw JsonPart(key, *item).expected("a number that fits into int64 or float32");
    }
  }
  if (is_whole) return tensor_of_items<int64_t>(items, shape, at::kLong);
  return is_wide ? tensor_of_items<double>(items, shape, at::kDouble)
                 : tensor_of_items<float>(items, shape, at::kFloat);
}

/// The value at `path`: under that very name, or inside of nested objects. Null when it is missing.
const Json* find_json(const Json& object, const std::string& path) {
  if (!object.is_object()) return nullptr;
  if (const auto whole = object.find(path); whole != object.end()) return &*whole;
  const size_t slash = path.find('/');
  if (slash == std::string::npos) return nullptr;
  const auto part = object.find(path.substr(0, slash));
  return part == object.end() ? nullptr : find_json(*part, path.substr(slash + 1));
}

/// The paths in a line by the keys that the parameter `keys` gives them.
OrderedMap<std::string> read_json_keys(const Config& params) {
  OrderedMap<std::string> keys;
  const auto value = params.get<Value>("keys");
  if (value.is_map()) {
    for (const auto& [key, path] : value.as_map())
      keys.set(key, path.is_text() ? path.as_text() : "");
  } else {
    for (const auto& key : params.get<std::vector<std::string>>("keys")) keys.set(key, key);
  }
  const bool has_all =
      std::ranges::all_of(keys, [](const auto& each) { return !each.second.empty(); });
  if (!keys.empty() && has_all) return keys;
  throw params.error("keys", "expected [text, label] or {class: label}, found " + value.describe());
}

bool has_item(const std::vector<std::string>& items, std::string_view item) {
  return std::ranges::find(items, item) != items.end();
}

/// A file of JSON lines: each line is an object, and an example.
///
/// A whole number is an int64 [], another one a float32 [], a boolean a bool []. Nested lists of
/// these are a tensor of their shape; one without elements is int64 [0]. A text is a text. An
/// object nests: {"box": {"x": 1}} has the key `box/x`.
///
/// A plain file is mapped: 8 bytes a line stay in memory, and `get` parses its line. A packed file
/// is unpacked into memory. The first call of `labels` reads all lines. Throws Error with file and
/// line for what fits none of the above, and for another type than in the first line.
class JsonLines : public Dataset, public KeepsFloat64 {
 public:
  struct Params {
    InputFile path;
    OrderedMap<std::string> keys;
    std::vector<std::string> floats = {};
    std::vector<std::string> images = {};
    std::vector<std::string> masks = {};
    ImageOptions reading;

    void declare(Parameters& p) {
      p.require("path", path, "the file, plain or gzip");
      const Config* config = p.describe_optional(
          "keys", "list of text | map",
          "keys to read, a/b inside of objects; a map {class: label} gives other names; null: all");
      if (config != nullptr) keys = read_json_keys(*config);
      p.add("floats", floats, "keys whose numbers are all float32, and NaN for null");
      p.add("images", images,
            "keys whose texts are paths of PNG or JPEG files, relative to the file");
      p.add("masks", masks,
            "keys whose texts are paths of PNG files of class numbers, int64 [H, W]");
      reading.declare(p);
    }
  };

  JsonLines(const Params& params, const Config& config)
      : params_(config),
        reader_(params.reading),
        keys_(params.keys),
        floats_(params.floats),
        images_(params.images),
        masks_(params.masks),
        file_(params.path.text) {
    if (is_packed()) unpacked_ = read_plain_or_gzip(file_.path());
    lines_ = TextUnits::lines(text(), /*skips_empty=*/true);
    if (size() == 0) throw Error(file_.path() + ": holds no lines");
    const Example first = read(0);
    std::vector<std::string> keys;
    for (const auto& [key, tensor] : first.tensors) {
      keys.push_back(key);
      types_.set(key, tensor.scalar_type());
      if (tensor.dim() == 0) scalars_.push_back(key);
    }
    for (const auto& [key, words] : first.texts) keys.push_back(key);
    for (const auto& [option, names] :
         {std::pair("floats", &floats_), std::pair("images", &images_),
          std::pair("masks", &masks_)}) {
      for (const auto& name : *names) {
        if (has_item(keys, name)) continue;
        throw config.error(option, fmt::format("the first line has no key \"{}\"; there are: {}",
                                               name, list_text(sorted_by_distance(name, keys))));
      }
    }
  }

  int64_t size() const override { return lines_.size(); }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size());
    return read(index);
  }

  at::Tensor labels(std::string_view key) const override {
    if (!has_item(scalars_, key)) return {};
    std::call_once(are_read_, [&] { read_labels(); });
    return labels_.at(key).to(types_.at(key));
  }

  std::vector<std::string> label_keys() const override { return scalars_; }

  std::string notice() const override {
    std::vector<std::string> notices;
    for (const auto* keys : {&images_, &masks_}) {
      for (const auto& key : *keys) notices.push_back(reader_.notice("", paths_of(key)));
    }
    notices.push_back(roundings());
    for (const auto& [key, type] : types_) {
      if (type == at::kLong) notices.push_back(plain_numbers_notice(params_, key));
    }
    return joined_notices(notices);
  }

  bool keep_float64(std::string_view key) override {
    at::ScalarType* type = types_.find(key);
    if (type != nullptr && *type == at::kFloat) *type = at::kDouble;
    return type != nullptr;
  }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return images_.empty() && masks_.empty() ? stepop::collate(examples, std::move(indices))
                                             : ImageReader::collate(examples, std::move(indices));
  }

 private:
  bool is_packed() const { return file_.bytes().starts_with("\x1f\x8b"); }
  std::string_view text() const { return is_packed() ? unpacked_ : file_.bytes(); }

  /// Calls `use` with a line; its errors begin with the file and the line.
  template <class Use>
  void visit(int64_t index, const Use& use) const {
    file_.check_size();
    const std::string_view line = lines_[index];
    try {
      if (line.size() > kMostLineBytes) throw Error("the line has more than 64 MB");
      use(parse_json(line, "the line"));
    } catch (const Error& error) {
      const auto before = text().substr(0, lines_.start(index));
      const bool has_words = line.find("NaN") != line.npos || line.find("Infinity") != line.npos;
      throw Error(fmt::format(
          "{}:{}: {}{}", file_.path(), 1 + std::count(before.begin(), before.end(), '\n'),
          error.what(), has_words ? "; JSON has no NaN, but null, which \"floats\" reads" : ""));
    }
  }

  Example read(int64_t index) const {
    Example example;
    visit(index, [&](const Json& line) { example = convert(line); });
    return example;
  }

  /// The example in a line, or only its numbers and booleans.
  Example convert(const Json& line, bool only_scalars = false) const {
    Example example;
    if (!line.is_object()) {
      throw JsonPart("the line", line).expected("an object such as {\"key\": 1}");
    }
    if (keys_.empty()) add(example, "", line, only_scalars);
    for (const auto& [key, path] : keys_) {
      const Json* value = find_json(line, path);
      if (value == nullptr) {
        std::vector<std::string> names;
        for (const auto& [name, part] : line.items()) names.push_back(name);
        throw Error(fmt::format("there is no key \"{}\"; there are: {}", path,
                                list_text(sorted_by_distance(path, names))));
      }
      add(example, key, *value, only_scalars);
    }
    return example;
  }

  void add(Example& example, const std::string& key, const Json& value, bool only_scalars,
           int depth = 0) const {
    if (value.is_object()) {
      if (depth == kMaxDepth) throw Error(fmt::format("objects nest deeper than {}", kMaxDepth));
      for (const auto& [name, part] : value.items()) {
        add(example, join_path(key, name), part, only_scalars, depth + 1);
      }
      return;
    }
    if (key == "index") {
      throw Error(
          "\"index\" is each example's place in the dataset: keys: {row: index} renames it");
    }
    if (example.tensors.contains(key) || example.texts.contains(key)) {
      throw Error(key + ": two values have this key");
    }
    if (only_scalars && (value.is_array() || value.is_string())) return;
    if (const bool is_mask = has_item(masks_, key); is_mask || has_item(images_, key)) {
      const auto folder = std::filesystem::path(file_.path()).parent_path();
      const std::string path = (folder / JsonPart(key, value).text()).string();
      example.tensors.set(key, is_mask ? reader_.read_mask(path) : reader_.read(path));
    } else if (value.is_string()) {
      example.texts.set(key, value.get<std::string>());
    } else {
      const auto* type = types_.find(key);
      const bool is_wide = type != nullptr && (*type == at::kDouble || only_scalars);
      at::Tensor tensor = json_tensor(value, has_item(floats_, key), is_wide, key);
      const bool is_other = type != nullptr && *type != tensor.scalar_type();
      if (is_other && !(only_scalars && *type == at::kFloat && tensor.is_floating_point())) {
        throw Error(
            fmt::format("{}: {} is of another type than in the first line; \"floats: [{}]\" "
                        "reads all numbers as float32",
                        key, describe_tensor(tensor), key));
      }
      example.tensors.set(key, std::move(tensor));
    }
  }

  /// The paths of images under `key`, of at most 1,000 lines.
  std::vector<std::string> paths_of(const std::string& key) const {
    constexpr int64_t kMostLines = 1000;
    const auto folder = std::filesystem::path(file_.path()).parent_path();
    const std::string* path = keys_.find(key);
    std::vector<std::string> paths;
    const int64_t count = std::min(size(), kMostLines);
    for (int64_t i = 0; i < count; ++i) {
      visit(i * size() / count, [&](const Json& line) {
        const Json* value = find_json(line, path == nullptr ? key : *path);
        if (value != nullptr && value->is_string()) {
          paths.push_back((folder / value->get<std::string>()).string());
        }
      });
    }
    return paths;
  }

  /// Warnings for keys of numbers from which float32 takes digits that matter, by at most 1,000
  /// lines from all over the file.
  std::string roundings() const {
    constexpr int64_t kMostLines = 1000;
    OrderedMap<std::vector<double>> numbers;
    for (const auto& key : scalars_) {
      if (types_.at(key) == at::kFloat) numbers.set(key, {});
    }
    const int64_t count = numbers.empty() ? 0 : std::min(size(), kMostLines);
    for (int64_t i = 0; i < count; ++i) {
      try {
        visit(i * size() / count, [&](const Json& line) {
          const Example example = convert(line, /*only_scalars=*/true);
          for (auto& [key, values] : numbers) {
            const at::Tensor* value = example.tensors.find(key);
            if (value != nullptr) values.push_back(value->item<double>());
          }
        });
      } catch (const Error&) {  // reported when the line is read
      }
    }
    std::vector<std::string> notices;
    for (const auto& [key, values] : numbers) {
      const at::Tensor all = at::empty({static_cast<int64_t>(values.size())}, at::kDouble);
      std::copy(values.begin(), values.end(), all.mutable_data_ptr<double>());
      notices.push_back(float32_notice(all, file_.path(), key, "the lines"));
    }
    return joined_notices(notices);
  }

  void read_labels() const {
    for (const auto& key : scalars_) {
      const at::ScalarType type = types_.at(key);
      labels_.set(key, at::empty({size()}, type == at::kFloat ? at::kDouble : type));
    }
    for (int64_t i = 0; i < size(); ++i) {
      visit(i, [&](const Json& line) {
        const Example example = convert(line, /*only_scalars=*/true);
        for (const auto& [key, values] : labels_) values[i].copy_(example.tensors.at(key));
      });
    }
  }

  Config params_;
  ImageReader reader_;
  OrderedMap<std::string> keys_;  ///< Empty: all keys of a line.
  std::vector<std::string> floats_;
  std::vector<std::string> images_;
  std::vector<std::string> masks_;
  MappedFile file_;
  std::string unpacked_;  ///< The text of a packed file.
  TextUnits lines_;
  OrderedMap<at::ScalarType> types_;  ///< The types in the first line.
  std::vector<std::string> scalars_;  ///< The keys of its numbers and booleans.
  mutable std::once_flag are_read_;
  mutable OrderedMap<at::Tensor> labels_;  ///< Floats are float64.
};

STEPOP_REGISTER_DATASET(
    JsonLines, {"A file with a JSON object in each line: numbers, lists, texts, paths of images."});

}  // namespace
}  // namespace stepop
