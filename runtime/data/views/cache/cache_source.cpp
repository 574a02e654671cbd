#include "runtime/data/views/cache/cache_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <set>
#include <system_error>

#include "runtime/core/base/error.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/system/look_at_data.h"
#include "runtime/core/value/yaml_writer.h"

namespace stepop {
namespace {

/// All texts in a value.
void add_texts(const Value& value, std::set<std::string>& texts) {
  if (value.is_text()) texts.insert(value.as_text());
  if (value.is_list()) {
    for (const auto& item : value.as_list()) add_texts(item, texts);
  }
  if (value.is_map()) {
    for (const auto& [key, item] : value.as_map()) add_texts(item, texts);
  }
}

/// The checksums of the files that register the classes in a config: a user's dataset gives other
/// examples after an edit.
std::string describe_code(const Value& config) {
  std::set<std::string> texts;
  add_texts(config, texts);
  std::string lines;
  for (const Catalogue* catalogue : Catalogue::all()) {
    for (const auto& registration : catalogue->registrations()) {
      std::error_code ignored;
      if (!texts.contains(registration.name)) continue;
      if (!std::filesystem::is_regular_file(registration.file, ignored)) continue;
      lines += fmt::format("code: {} {}\n", registration.name, file_checksum(registration.file));
    }
  }
  return lines;
}

std::string describe_files(const Config& params, std::string_view key) {
  const std::string inside = join_path(params.path(), key) + "/";
  std::string lines;
  for (const auto& [path, file] : params.opened()) {
    if (!path.starts_with(inside)) continue;
    const DataFile seen =
        look_at_data(file, DataChecksums::kSize, {}, std::numeric_limits<double>::infinity());
    if (!seen.failure.empty()) {
      throw Error(
          fmt::format("{}: {}; a cache has to know what it was made from", file, seen.failure));
    }
    lines += fmt::format("file: {} {} files {} bytes {} {}\n", file, seen.files, seen.bytes,
                         seen.modified, seen.listing);
  }
  return lines;
}

/// Adds the splits whose rows a part of `value` takes means and classes from: `fit: train`.
void add_fits(const Value& value, std::set<std::string>& splits) {
  if (value.is_list()) {
    for (const auto& item : value.as_list()) add_fits(item, splits);
  }
  if (!value.is_map()) return;
  for (const auto& [key, item] : value.as_map()) {
    if (key == "fit" && item.is_text()) splits.insert(item.as_text());
    add_fits(item, splits);
  }
}

/// What other parts of the config decide on: the numbers of classes, and what a `fit` found.
std::string describe_training(const Config& params, const Value& config) {
  const Config root = params.root();
  Value::Map decided;
  if (const Value* names = root.peek("class_names")) decided.set("class_names", *names);
  std::set<std::string> splits;
  add_fits(config, splits);
  for (const auto& split : splits) {
    if (const Value* part = root.peek("datasets/" + split)) decided.set("fit " + split, *part);
  }
  return decided.empty() ? "" : to_yaml(Value(std::move(decided)));
}

}  // namespace

std::string describe_source(const Config& params, std::string_view key) {
  const Value config = *params.peek(key);
  return fmt::format("stepop {}\n{}{}{}{}", STEPOP_VERSION, describe_code(config),
                     describe_files(params, key), describe_training(params, config),
                     to_yaml(Value(Value::Map{{"dataset", config}})));
}

}  // namespace stepop
