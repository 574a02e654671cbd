#include "runtime/tools/code/code_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/read_file.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

/// The deepest folder that contains all files.
fs::path common_folder(const std::vector<std::string>& files) {
  fs::path common = fs::path(files.front()).parent_path();
  for (const auto& file : files) {
    while (fs::path(file).lexically_relative(common).string().starts_with("..")) {
      common = common.parent_path();
    }
  }
  return common;
}

}  // namespace

CodeCopy::CodeCopy(const std::string& run, const std::string& until) {
  if (run.empty()) return;
  run_ = fs::absolute(run).lexically_normal().string();
  std::vector<std::string> folders;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run_ + "/code", none)) {
    const bool is_later = !until.empty() && entry.path().filename().string() > until;
    if (!is_later && fs::exists(entry.path() / "sources.json"))
      folders.push_back(entry.path().string());
  }
  if (folders.empty()) return;
  folder_ = *std::max_element(folders.begin(), folders.end());
  try {
    const Json json = read_ordered_json(try_read_file(folder_ + "/sources.json").value_or(""));
    root_ = json.at("root").get<std::string>();
    for (const auto& [name, checksum] : json.at("files").items()) {
      files_.push_back({name, checksum.get<std::string>()});
    }
  } catch (const Json::exception& error) {
    throw Error(
        fmt::format("{}/sources.json: damaged: {}; remove that folder to resume with the "
                    "code that the config names",
                    folder_, error.what()));
  }
}

std::string CodeCopy::find(const std::string& path) const {
  for (const auto& file : files_) {
    if (fs::path(root_) / file.name == path) return folder_ + "/" + file.name;
  }
  return path;
}

std::vector<std::string> CodeCopy::differences() const {
  std::vector<std::string> all;
  for (const auto& file : files_) {
    const auto original = try_read_file((fs::path(root_) / file.name).string());
    const std::string name = fs::path(file.name).filename().string();
    if (!original) {
      all.push_back(name + " is gone");
    } else if (content_checksum(*original) != file.checksum) {
      all.push_back(name + " changed");
    }
  }
  return all;
}

/// The original path of a file in the copy; any other path is returned unchanged.
std::string CodeCopy::original_of(const std::string& path) const {
  if (!is_there() || !path.starts_with(folder_ + "/")) return path;
  return (fs::path(root_) / fs::path(path).lexically_relative(folder_)).string();
}

void CodeCopy::save(const std::vector<std::string>& files, const std::string& time) const {
  // A resumed run compiles the copies, and may add new files.
  std::vector<std::string> originals;
  bool has_new_file = false;
  for (const auto& path : files) {
    originals.push_back(original_of(path));
    if (originals.back() == path) has_new_file = true;
  }
  if (!has_new_file) return;
  const fs::path root = common_folder(originals);
  Json names = Json::object();
  std::vector<std::pair<std::string, std::string>> contents;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string name = fs::path(originals[i]).lexically_relative(root).string();
    std::string content = read_file(files[i]);
    const std::string checksum = content_checksum(content);
    if (names.value(name, checksum) != checksum) {
      throw UsageError(
          fmt::format("{} changed since the run's own copy of it was made, and code that is new "
                      "here includes it as it is now: --current-code takes all files as they are "
                      "now",
                      name));
    }
    names[name] = checksum;
    contents.emplace_back(name, std::move(content));
  }
  const bool is_same = root == root_ && names.size() == files_.size() &&
                       std::all_of(files_.begin(), files_.end(), [&](const File& file) {
                         return names.value(file.name, "") == file.checksum;
                       });
  if (is_same) return;
  const std::string folder = run_ + "/code/" + time;
  for (const auto& [name, content] : contents) {
    const std::string path = folder + "/" + name;
    make_folders(fs::path(path).parent_path().string());
    write_file_atomically(path, content);
  }
  // This file is written last: a folder with the file is complete.
  write_file_atomically(folder + "/sources.json",
                        write_json(Json{{"root", root.string()}, {"files", names}}, 1) + "\n");
}

}  // namespace stepop
