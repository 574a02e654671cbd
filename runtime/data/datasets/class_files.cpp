#include "runtime/data/datasets/class_files.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/core/base/error.h"
#include "runtime/data/class_numbers.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

/// Adds the files that lie beside the class folders.
void add_beside(const std::string& folder, LeftOut& left_out) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() || is_hidden(entry.path())) continue;
    left_out.add(entry.path().filename().string());
  }
}

/// The names of the class folders, sorted.
std::vector<std::string> list_classes(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !is_hidden(entry.path())) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Throws if a class that the config lists occurs twice or has no folder.
void check_classes(const std::vector<std::string>& names, const Config& params,
                   const std::string& folder) {
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string key = fmt::format("classes/{}", i);
    if (std::count(names.begin(), names.end(), names[i]) > 1) {
      throw params.error(key, fmt::format("the class \"{}\" is named twice", names[i]));
    }
    if (!fs::is_directory(fs::path(folder) / names[i])) {
      throw params.error(key, fmt::format("no such folder: {}/{}", folder, names[i]));
    }
  }
}

}  // namespace

std::vector<std::string> list_files(const std::string& folder, const std::string& below,
                                    const std::vector<std::string_view>& endings,
                                    LeftOut& left_out) {
  std::vector<std::string> files;
  fs::recursive_directory_iterator entries(fs::path(folder) / below,
                                           fs::directory_options::follow_directory_symlink);
  for (auto it = fs::begin(entries); it != fs::end(entries); ++it) {
    std::string ending = it->path().extension().string();
    for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (is_hidden(it->path())) {
      it.disable_recursion_pending();
    } else if (std::ranges::find(endings, ending) != endings.end() && it->is_regular_file()) {
      files.push_back(it->path().lexically_relative(folder).string());
    } else if (!it->is_directory()) {
      left_out.add(it->path().lexically_relative(folder).string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void ClassFolders::declare(Parameters& p, std::string_view files) {
  p.add("classes", classes,
        fmt::format("class folders that are read, in the training in the order of their numbers; "
                    "null: all, sorted by name; []: {} without classes",
                    files));
  add_unknown_classes(p, has_unknown,
                      "a folder that is no class of the training is an error; id: it has the "
                      "number behind the last class");
}

ClassFiles list_class_files(const Config& params, const std::string& folder,
                            const ClassFolders& folders, const FileKind& kind) {
  const bool are_named = folders.classes.has_value();
  ClassFiles files;
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> found;
  bool has_classes = true;
  try {
    if (are_named) check_classes(*folders.classes, params, folder);
    names = are_named ? *folders.classes : list_classes(folder);
    has_classes = !are_named || !names.empty();
    if (!has_classes) files.paths = list_files(folder, "", kind.endings, files.left_out);
    if (has_classes) add_beside(folder, files.left_out);
    for (const auto& name : names) {
      found.push_back(list_files(folder, name, kind.endings, files.left_out));
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(
        fmt::format("{}: cannot be listed: {}", error.path1().string(), error.code().message()));
  }
  for (const auto& of_class : found) {
    files.paths.insert(files.paths.end(), of_class.begin(), of_class.end());
  }
  const auto check_folder = [&](size_t i) {
    if (!found[i].empty() || are_named) return;
    throw Error(
        fmt::format("{}/{}: this class folder holds no {}; add some, or name the classes "
                    "with \"classes\"",
                    folder, names[i], kind.file));
  };
  if (files.paths.empty() && !names.empty()) check_folder(0);
  if (files.paths.empty()) {
    throw Error(fmt::format("{}: holds no {}; they are looked for as {}{} below it", folder,
                            kind.plural, has_classes ? "CLASS/" : "", kind.pattern));
  }
  if (!has_classes) return files;
  const ClassNumbers classes(params, "class", {.names = names, .has_unknown = folders.has_unknown});
  files.classes = at::empty({static_cast<int64_t>(files.paths.size())}, at::kLong);
  auto* number_of_file = files.classes.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < names.size(); ++i) {
    if (!classes.are_given()) check_folder(i);
    if (found[i].empty()) continue;
    const auto number = classes.find(names[i]);
    if (!number) {
      throw Error(fmt::format("{}/{}: expected {}; \"classes\" leaves folders out", folder,
                              names[i], classes.expected()));
    }
    number_of_file = std::fill_n(number_of_file, found[i].size(), *number);
  }
  files.notice = classes.notice(files.classes);
  return files;
}

}  // namespace stepop
