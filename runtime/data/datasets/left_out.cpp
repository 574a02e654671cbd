#include "runtime/data/datasets/left_out.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/pictures/webp.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

constexpr size_t kMostFolders = 5;

std::string ending_of(const std::filesystem::path& file) {
  std::string ending = file.extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return ending.empty() ? "without an ending" : ending;
}

}  // namespace

std::string LeftOut::notice(const std::string& folder, int64_t taken) const {
  if (paths_.empty()) return {};
  std::map<std::string, std::map<std::string, int64_t>> counts;  // by folder and ending
  for (const auto& path : paths_) {
    const std::filesystem::path file(path);
    ++counts[file.parent_path().string()][ending_of(file)];
  }
  bool needs_webp = false;
  std::vector<std::string> folders;
  for (const auto& [name, endings] : counts) {
    std::vector<std::string> texts;
    for (const auto& [ending, count] : endings) {
      needs_webp = needs_webp || (ending == ".webp" && !has_webp());
      texts.push_back(fmt::format("{} {}", with_thousands(count), ending));
    }
    folders.push_back(fmt::format("{} {}", name.empty() ? "in the folder itself" : "in " + name,
                                  list_text(texts)));
  }
  std::string where;
  for (size_t i = 0; i < folders.size() && i < kMostFolders; ++i) {
    where += (i > 0 ? "; " : "") + folders[i];
  }
  if (folders.size() > kMostFolders) {
    where += fmt::format("; and in {} more folders", folders.size() - kMostFolders);
  }
  const auto count = static_cast<int64_t>(paths_.size());
  return fmt::format(
      "{}{}: {} of {} left out: {}{}", kWarning, folder, with_thousands(count),
      counted(taken + count, "file"), where,
      needs_webp ? "; .webp is read with libwebp (Debian: apt-get install libwebp7)" : "");
}

}  // namespace stepop
