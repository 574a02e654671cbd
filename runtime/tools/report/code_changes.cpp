#include "runtime/tools/report/code_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "runtime/core/base/number_text.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostChangedLines = 40;  // the shown lines for a file
constexpr size_t kMostComparisons = 4'000'000;

using TextLines = std::vector<std::string_view>;

TextLines lines_of(std::string_view text) {
  TextLines lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// The changed lines between two texts, by their longest common subsequence; for longer texts, all
/// lines between the first and the last change.
class LineDifference {
 public:
  LineDifference(const std::string& before, const std::string& now)
      : before_(lines_of(before)), now_(lines_of(now)) {
    const auto shortest = std::min(before_.size(), now_.size());
    while (first_ < shortest && before_[first_] == now_[first_]) ++first_;
    while (last_ < shortest - first_ &&
           before_[before_.size() - 1 - last_] == now_[now_.size() - 1 - last_]) {
      ++last_;
    }
    compare();
  }

  size_t added() const { return added_; }
  size_t removed() const { return removed_; }
  /// The lines for FileChange.
  std::vector<std::string> lines() const {
    if (lines_.size() <= kMostChangedLines) return lines_;
    std::vector<std::string> shown(lines_.begin(), lines_.begin() + kMostChangedLines);
    shown.push_back(
        fmt::format("... and {}", counted(lines_.size() - kMostChangedLines, "more line")));
    return shown;
  }

 private:
  void compare() {
    const size_t rows = before_.size() - first_ - last_;
    const size_t columns = now_.size() - first_ - last_;
    // common[i][j]: the number of lines that the rests after i and j have in common.
    std::vector<uint32_t> common;
    const bool is_too_long = rows > 0 && columns > kMostComparisons / rows;
    if (!is_too_long) common.resize((rows + 1) * (columns + 1));
    const auto at = [&](size_t i, size_t j) -> uint32_t& { return common[i * (columns + 1) + j]; };
    const auto is_same = [&](size_t i, size_t j) {
      return before_[first_ + i] == now_[first_ + j];
    };
    for (size_t i = rows; !is_too_long && i-- > 0;) {
      for (size_t j = columns; j-- > 0;) {
        at(i, j) = is_same(i, j) ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
    bool is_in_change = false;
    for (size_t i = 0, j = 0; i < rows || j < columns;) {
      if (!is_too_long && i < rows && j < columns && is_same(i, j)) {
        ++i, ++j;
        is_in_change = false;
        continue;
      }
      if (!is_in_change) lines_.push_back(fmt::format("@ line {}", first_ + j + 1));
      is_in_change = true;
      const bool is_removed =
          j == columns || (i < rows && (is_too_long || at(i + 1, j) >= at(i, j + 1)));
      if (is_removed) {
        lines_.push_back(fmt::format("-{}", before_[first_ + i++]));
        ++removed_;
      } else {
        lines_.push_back(fmt::format("+{}", now_[first_ + j++]));
        ++added_;
      }
    }
  }

  TextLines before_;
  TextLines now_;
  size_t first_ = 0;  ///< The number of equal lines at the beginning.
  size_t last_ = 0;   ///< The number of equal lines at the end.
  size_t added_ = 0;
  size_t removed_ = 0;
  std::vector<std::string> lines_;
};

std::string names_of(const KeptCode& code) {
  std::string names;
  for (const auto& [name, content] : code.files) names += (names.empty() ? "" : ", ") + name;
  return names;
}

std::string describe_changes(const std::vector<FileChange>& changes) {
  std::string text;
  for (const FileChange& change : changes) {
    text += fmt::format("  {}: {}\n", change.file, change.what);
    for (const auto& line : change.lines) text += fmt::format("    {}\n", line);
  }
  return text;
}

}  // namespace

std::vector<KeptCode> find_kept_code(const RunDirectory& run) {
  std::vector<KeptCode> all;
  std::error_code failed;
  for (const auto& start : fs::directory_iterator(run.root() + "/code", failed)) {
    // The file is written last: a folder with the file is complete.
    if (!fs::exists(start.path() / "sources.json", failed)) continue;
    KeptCode code{start.path().filename().string(), {}};
    std::error_code unreadable;
    for (fs::recursive_directory_iterator entry(start.path(), unreadable), end;
         !unreadable && entry != end; entry.increment(unreadable)) {
      const std::string name = entry->path().lexically_relative(start.path()).string();
      if (name == "sources.json" || !entry->is_regular_file(failed)) continue;
      std::ifstream file(entry->path(), std::ios::binary);
      if (file) code.files[name] = {std::istreambuf_iterator<char>(file), {}};
    }
    all.push_back(std::move(code));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  return all;
}

std::vector<FileChange> compare_code(const KeptCode& before, const KeptCode& now) {
  std::vector<FileChange> changes;
  for (const auto& [name, content] : before.files) {
    const auto found = now.files.find(name);
    if (found == now.files.end()) {
      changes.push_back({name, "removed"});
    } else if (found->second != content) {
      const LineDifference difference(content, found->second);
      std::string what = fmt::format("{} line{} added, {} removed", difference.added(),
                                     difference.added() == 1 ? "" : "s", difference.removed());
      if (difference.added() + difference.removed() == 0) what = "the newline at its end";
      changes.push_back({name, std::move(what), difference.lines()});
    }
  }
  for (const auto& [name, content] : now.files) {
    if (!before.files.contains(name)) changes.push_back({name, "added"});
  }
  std::sort(changes.begin(), changes.end(),
            [](const auto& a, const auto& b) { return a.file < b.file; });
  return changes;
}

std::string describe_code_changes(const std::vector<std::string>& labels,
                                  const std::vector<RunDirectory>& runs) {
  std::vector<KeptCode> newest;
  bool has_code = false;
  for (const auto& run : runs) {
    const std::vector<KeptCode> all = find_kept_code(run);
    newest.push_back(all.empty() ? KeptCode{} : all.back());
    has_code = has_code || !all.empty();
  }
  if (!has_code) return "";
  std::string text;
  for (size_t i = 1; i < runs.size(); ++i) {
    const KeptCode& before = newest.front();
    const KeptCode& now = newest[i];
    if (before.files.empty() != now.files.empty()) {
      const bool is_first = !before.files.empty();
      text +=
          fmt::format("Only {} keeps code of its own, {} does not: {}\n", labels[is_first ? 0 : i],
                      labels[is_first ? i : 0], names_of(is_first ? before : now));
      continue;
    }
    const auto changes = compare_code(before, now);
    if (changes.empty()) continue;
    text += fmt::format("The code of {} differs from that of {}:\n{}", labels[i], labels.front(),
                        describe_changes(changes));
  }
  return text.empty() ? "The code is the same.\n" : text;
}

}  // namespace stepop
