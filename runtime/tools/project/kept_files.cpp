#include "runtime/tools/project/kept_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/system/cache_folder.h"
#include "runtime/core/system/checksum.h"
#include "runtime/tools/code/build_settings.h"
#include "runtime/tools/code/precompiled_header.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// Whether the file belongs to compiled code, such as `d06800538d394c21.json`.
bool is_of_code(std::string_view name) {
  const size_t digits = std::min(name.find_first_not_of("0123456789abcdef"), name.size());
  return digits == Checksum::kDigits && digits < name.size() &&
         (name[digits] == '.' || name[digits] == '-');
}

/// The kind of a file in the cache folder; empty for other programs' files.
std::string kind_of(std::string_view name) {
  if (is_of_code(name)) return "compiled code";
  if (name.starts_with("headers-")) return "precompiled headers";
  if (name == kMeasuredHeaders) return "times of precompiling";
  if (name == "tokens") return "tokens of texts";
  return name == "tuned" ? "settings of stepop tune" : "";
}

double bytes_of(const fs::path& path) {
  std::error_code failed;
  double bytes = 0;
  const auto add = [&](const fs::path& file) {
    const auto size = fs::file_size(file, failed);
    if (!failed) bytes += static_cast<double>(size);
  };
  if (!fs::is_directory(path, failed)) {
    add(path);
    return bytes;
  }
  for (fs::recursive_directory_iterator entry(path, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code none;
    if (entry->is_regular_file(none)) add(entry->path());
  }
  return bytes;
}

}  // namespace

std::vector<KeptFiles> kept_files() {
  std::vector<KeptFiles> all;
  const auto add = [&](const std::string& what, const fs::path& path) {
    const std::string where = path.parent_path().string();
    auto found = std::ranges::find_if(
        all, [&](const KeptFiles& files) { return files.what == what && files.where == where; });
    if (found == all.end()) found = all.insert(found, {.what = what, .where = where});
    found->bytes += bytes_of(path);
    found->paths.push_back(path.string());
  };
  std::error_code none;
  std::string cache;
  try {
    cache = cache_folder("what stepop keeps");
  } catch (const Error&) {  // without a home there is no cache
  }
  for (const auto& entry : fs::directory_iterator(cache, none)) {
    if (const std::string kind = kind_of(entry.path().filename().string()); !kind.empty()) {
      add(kind, entry.path());
    }
  }
  const fs::path headers = build_settings().headers;
  if (fs::exists(headers / "key", none)) {
    all.push_back({.what = "precompiled headers of this installation",
                   .where = headers.string(),
                   .bytes = bytes_of(headers)});
  }
  std::ranges::stable_sort(all, {}, &KeptFiles::what);
  return all;
}

std::string kept_files_table(const std::vector<KeptFiles>& kept) {
  if (kept.empty()) return "nothing is kept\n";
  TextTable table({{"kept"}, {"size", true}, {"where"}});
  for (const auto& files : kept) table.add({files.what, size_text(files.bytes), files.where});
  return table.text() + "stepop prepare --clean removes all but what is of the installation\n";
}

}  // namespace stepop
