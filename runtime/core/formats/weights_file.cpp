#include "runtime/core/formats/weights_file.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "runtime/core/base/error.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/formats/json_file.h"
#include "runtime/core/formats/torch_file.h"
#include "runtime/core/formats/torch_storages.h"
#include "runtime/core/system/read_file.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

/// The first bytes of a regular file; nothing where there are none.
std::string beginning_of(const std::string& path) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return {};
  std::array<char, 32> bytes{};
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  return {bytes.data(), static_cast<size_t>(file.gcount())};
}

/// The files that an index names, each once.
std::set<std::string> files_of_index(const std::string& path) {
  const nlohmann::json index = parse_json(read_file(path), path);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object() || map->empty()) {
    throw Error(path + ": an index of weights has a map `weight_map` of names and files");
  }
  std::set<std::string> files;
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string() || fs::path(file.get<std::string>()).has_parent_path()) {
      throw Error(path + ": weight_map: expected the name of a file beside it for " + name);
    }
    files.insert(fs::path(path).replace_filename(file.get<std::string>()).string());
  }
  return files;
}

bool is_index(const std::string& path) { return path.ends_with(".index.json"); }

bool is_gzip(std::string_view beginning) { return beginning.starts_with("\x1f\x8b"); }

SafetensorsFile load_one(const std::string& path) {
  const std::string beginning = beginning_of(path);
  if (is_torch_file(beginning)) return {.tensors = load_torch_file(path), .metadata = {}};
  if (is_gzip(beginning)) {
    throw Error(fmt::format("{}: it is packed by gzip; unpack it first: gunzip -c {} > weights.pt",
                            path, shell_word(path)));
  }
  return load_safetensors(path);
}

}  // namespace

SafetensorsFile load_weights(const std::string& path) {
  if (!is_index(path)) return load_one(path);
  SafetensorsFile all;
  for (const auto& file : files_of_index(path)) all.tensors.merge(load_one(file).tensors);
  return all;
}

bool is_weights_of_python(const std::string& path) {
  const std::string beginning = beginning_of(path);
  return is_index(path) || is_torch_file(beginning) || is_gzip(beginning);
}

}  // namespace stepop
