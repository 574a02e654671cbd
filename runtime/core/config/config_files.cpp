#include "runtime/core/config/config_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/core/config/merge.h"
#include "runtime/core/value/yaml_reader.h"

namespace stepop {
namespace {

/// Reads config files together with the files that they include.
class ConfigFiles {
 public:
  explicit ConfigFiles(std::vector<std::string>* read) : read_(read) {}

  /// The file, merged over the files that its `include` names.
  Value read(const std::string& path) {
    if (read_ != nullptr) read_->push_back(path);
    Value content = read_yaml_file(path);
    const Value* included = content.find(kInclude);
    if (included == nullptr) return content;
    if (open_.size() >= kMostDeep || ++files_ > kMostFiles) {
      throw UsageError(fmt::format("{}: {}: files that include one another, {} deep and {} in all",
                                   included->origin().text(), kInclude, open_.size(), files_));
    }
    open_.push_back(path);
    Value root = Value(Value::Map{});
    for (const auto& name : names(*included)) merge(root, read(place_of(name, *included)));
    open_.pop_back();
    content.as_map().erase(kInclude);
    merge(root, content);
    return root;
  }

 private:
  static constexpr const char* kInclude = "include";
  static constexpr size_t kMostDeep = 20;
  static constexpr int kMostFiles = 1000;

  static std::vector<std::string> names(const Value& value) {
    std::vector<std::string> names;
    const auto add = [&](const Value& name) {
      if (!name.is_text()) {
        throw UsageError(fmt::format("{}: {}: expected the names of config files, found {}",
                                     value.origin().text(), kInclude, name.describe()));
      }
      names.push_back(name.as_text());
    };
    if (!value.is_list()) {
      add(value);
    } else {
      for (const auto& name : value.as_list()) add(name);
    }
    return names;
  }

  /// The path of an included file, relative to the file that includes it.
  std::string place_of(const std::string& name, const Value& from) const {
    namespace fs = std::filesystem;
    const fs::path path = (fs::path(folder_of_config(open_.back())) / name).lexically_normal();
    std::error_code failed;
    const auto is_same = [&](const std::string& other) {
      return fs::equivalent(path, other, failed);
    };
    if (std::any_of(open_.begin(), open_.end(), is_same)) {
      throw UsageError(fmt::format("{}: {}: {} includes itself: {} -> {}", from.origin().text(),
                                   kInclude, path.string(), fmt::join(open_, " -> "),
                                   path.string()));
    }
    if (!fs::is_regular_file(path, failed)) {
      throw UsageError(
          fmt::format("{}: {}: {}: no such file", from.origin().text(), kInclude, path.string()));
    }
    return path.string();
  }

  std::vector<std::string> open_;  ///< The files being read, each included by the last.
  int files_ = 0;
  std::vector<std::string>* read_;
};

}  // namespace

std::string folder_of_config(const std::string& file) {
  if (file.starts_with("/dev/") || file.starts_with("/proc/")) return {};
  return std::filesystem::path(file).parent_path().string();
}

Value read_config_file(const std::string& path, std::vector<std::string>* read) {
  return ConfigFiles(read).read(path);
}

}  // namespace stepop
