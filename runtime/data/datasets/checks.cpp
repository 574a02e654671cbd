#include "runtime/data/datasets/checks.h"

#include <fmt/format.h>

#include <filesystem>

namespace stepop {

std::string get_file(const Config& params, std::string_view key) {
  const std::string path = params.get_path(key);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) throw params.error(key, "no such file: " + path);
  if (std::filesystem::is_directory(path, ignored)) {
    throw params.error(key, "expected a file, found a folder: " + path);
  }
  return path;
}

std::string get_folder(const Config& params, std::string_view key) {
  const std::string path = params.get_path(key);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) throw params.error(key, "no such folder: " + path);
  if (!std::filesystem::is_directory(path, ignored)) {
    throw params.error(key, "expected a folder, found a file: " + path);
  }
  return path;
}

void check_index(int64_t index, int64_t size) {
  if (index >= 0 && index < size) return;
  throw Error(fmt::format("there is no example {}: the dataset has {}", index, size));
}

}  // namespace stepop
