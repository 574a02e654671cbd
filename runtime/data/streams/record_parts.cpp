#include "runtime/data/streams/record_parts.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/float32.h"
#include "runtime/core/formats/json_file.h"
#include "runtime/core/formats/npy_file.h"
#include "runtime/data/streams/shard_reader.h"

namespace stepop {

enum class PartKind { kImage, kClass, kText, kJson, kArray, kClip };

namespace {

constexpr std::string_view kKnown = "png, jpg, jpeg, webp, cls, txt, json, npy";

/// What stands behind the last dot.
std::string_view ending_of(std::string_view extension) {
  return extension.substr(extension.rfind('.') + 1);
}

int64_t class_of(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  text = text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
  int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) {
    constexpr size_t kShown = 40;
    throw Error(fmt::format("expected a whole number, found \"{}\"", text.substr(0, kShown)));
  }
  return number;
}

using Json = nlohmann::json;

int64_t whole_of(const Json& number) {
  const bool is_large =
      number.is_number_unsigned() &&
      number.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (is_large) {
    throw Error(fmt::format("holds {}, which no int64 can be", number.get<uint64_t>()));
  }
  return number.get<int64_t>();
}

float real_of(const Json& number) {
  const auto value = number.get<double>();
  if (!fits_float32(value)) {
    throw Error(fmt::format("holds {}, which no float32 can be", value));
  }
  return static_cast<float>(value);
}

/// A list of numbers as a tensor: int64 when all are whole, else float.
at::Tensor numbers_of(const Json& list) {
  const bool are_whole = std::all_of(list.begin(), list.end(),
                                     [](const Json& item) { return item.is_number_integer(); });
  at::Tensor tensor =
      at::empty({static_cast<int64_t>(list.size())}, are_whole ? at::kLong : at::kFloat);
  for (size_t i = 0; i < list.size(); ++i) {
    if (are_whole) {
      tensor.mutable_data_ptr<int64_t>()[i] = whole_of(list[i]);
    } else {
      tensor.mutable_data_ptr<float>()[i] = real_of(list[i]);
    }
  }
  return tensor;
}

void add_json(const Json& value, const std::string& key, int depth, Example& example) {
  constexpr int kMostDepth = 32;
  if (depth > kMostDepth) throw Error(fmt::format("more than {} maps in each other", kMostDepth));
  if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) {
      if (!name.empty()) add_json(inner, key + "/" + name, depth + 1, example);
    }
  } else if (value.is_boolean()) {
    example.tensors.set(key, at::scalar_tensor(value.get<bool>(), at::kBool));
  } else if (value.is_number_integer()) {
    example.tensors.set(key, at::scalar_tensor(whole_of(value), at::kLong));
  } else if (value.is_number()) {
    example.tensors.set(key, at::scalar_tensor(real_of(value), at::kFloat));
  } else if (value.is_string()) {
    example.texts.set(key, value.get<std::string>());
  } else if (value.is_array() && !value.empty() &&
             std::all_of(value.begin(), value.end(),
                         [](const Json& item) { return item.is_number(); })) {
    example.tensors.set(key, numbers_of(value));
  }
}

}  // namespace

struct RecordParts::Kind {
  std::string_view ending;
  PartKind kind;
  std::string_view key;
};

/// Null for members that cannot be read.
const RecordParts::Kind* RecordParts::kind_of(std::string_view extension) const {
  static constexpr Kind kKinds[] = {
      {"png", PartKind::kImage, "image"},  {"jpg", PartKind::kImage, "image"},
      {"jpeg", PartKind::kImage, "image"}, {"webp", PartKind::kImage, "image"},
      {"cls", PartKind::kClass, "class"},  {"txt", PartKind::kText, "text"},
      {"json", PartKind::kJson, "json"},   {"npy", PartKind::kArray, "array"}};
  static constexpr Kind kClip = {"", PartKind::kClip, "frames"};
  const std::string_view ending = ending_of(extension);
  if (clips_.has(ending)) return &kClip;
  const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const Kind& kind) { return kind.ending == ending; });
  return found == std::end(kKinds) ? nullptr : found;
}

void RecordParts::add(const std::string& key, const std::string& extension,
                      const std::string& bytes, Example& example) const {
  switch (kind_of(extension)->kind) {
    case PartKind::kImage:
      example.tensors.set(key, images_.decode(bytes, "the image"));
      break;
    case PartKind::kClip:
      example.tensors.set(key, clips_.decode(ending_of(extension), bytes, images_));
      break;
    case PartKind::kClass: {
      const int64_t number = class_of(bytes);
      const int64_t known = classes_ ? classes_->apply(number) : number;
      example.tensors.set(key, at::scalar_tensor(known, at::kLong));
      break;
    }
    case PartKind::kArray:
      example.tensors.set(key, parse_npy(bytes, "the array").all());
      break;
    case PartKind::kJson: {
      const Json json = parse_json(bytes, "it");
      if (!json.is_object()) throw Error("expected a map of JSON, { }");
      add_json(json, key, 0, example);
      break;
    }
    case PartKind::kText:
      example.texts.set(key, bytes);
  }
}

void RecordParts::Params::declare(Parameters& p) {
  const Config* config = p.describe_optional(
      "keys", "map", "extensions to read, and their keys: {png: image}; null: all that are known");
  if (config != nullptr) {
    keys.emplace();
    for (const auto& extension : config->at("keys").keys()) {
      keys->set(extension, config->get<std::string>("keys/" + extension));
    }
  }
  clips.declare(p);
  add_unknown_classes(p, has_unknown,
                      "a class of classes.txt that the training does not have is an error; id: it "
                      "has the number behind the last class");
  images.declare(p);
}

RecordParts::RecordParts(const Params& params, const Config& config)
    : has_unknown_(params.has_unknown), images_(params.images), clips_(params.clips) {
  if (!params.keys) return;
  for (const auto& [extension, key] : *params.keys) {
    const std::string path = "keys/" + extension;
    if (kind_of(extension) == nullptr) {
      throw config.error(
          path, fmt::format("members .{} cannot be read; those that can are {}, and those that "
                            "\"decode\" has a command for",
                            extension, kKnown));
    }
    for (const auto& [other, other_key] : keys_) {
      if (other_key == key && kind_of(other)->kind != kind_of(extension)->kind) {
        throw config.error(path, fmt::format("\"{}\" is the key of .{} already", key, other));
      }
    }
    keys_.set(extension, key);
  }
  if (keys_.empty()) {
    throw config.error("keys", "expected a map of extensions and keys, such as {png: image}");
  }
}

void RecordParts::name_classes(const Config& params, std::vector<std::string> names,
                               std::string file) {
  if (!wants("cls")) return;
  classes_.emplace(params, key_of("cls"), std::move(names), std::move(file), has_unknown_);
}

std::string RecordParts::class_notice(const Config& params) const {
  if (classes_) return classes_->notice({});
  return wants("cls") ? plain_numbers_notice(params, key_of("cls"),
                                             "classes.txt beside the shards has their names")
                      : "";
}

bool RecordParts::wants(const std::string& extension, Which which) const {
  const Kind* kind = kind_of(extension);
  if (kind == nullptr || (!keys_.empty() && !keys_.contains(extension))) return false;
  return which == Which::kAll || (kind->kind != PartKind::kImage && kind->kind != PartKind::kClip);
}

bool RecordParts::is_picture(const std::string& extension) const {
  return wants(extension) && kind_of(extension)->kind == PartKind::kImage;
}

std::string RecordParts::key_of(const std::string& extension) const {
  if (const std::string* key = keys_.find(extension)) return *key;
  const size_t dot = extension.rfind('.');
  if (dot != std::string::npos) return extension.substr(0, dot);
  return std::string(kind_of(extension)->key);
}

Example RecordParts::decode(const OrderedMap<std::string>& parts, Which which) const {
  Example example;
  OrderedMap<std::string> from;
  for (const auto& [extension, bytes] : parts) {
    if (extension == kKeyPart) {
      example.texts.set("key", bytes);
      continue;
    }
    if (!wants(extension, which)) continue;
    const std::string key = key_of(extension);
    if (const std::string* other = from.find(key)) {
      throw Error(
          fmt::format(".{} and .{} are both \"{}\"; \"keys\" chooses", *other, extension, key));
    }
    from.set(key, extension);
    try {
      add(key, extension, bytes, example);
    } catch (...) {
      throw Error(fmt::format(".{}: {}", extension, text_of_current_exception()));
    }
  }
  if (!from.empty() || which != Which::kAll) return example;
  throw Error(fmt::format("none of its members can be read; those that can are {}",
                          keys_.empty() ? std::string(kKnown) : keys_.key_list()));
}

}  // namespace stepop
