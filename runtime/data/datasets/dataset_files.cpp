#include "runtime/data/datasets/dataset_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/formats/byte_input.h"
#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/formats/tar_reader.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// The limit for one file in an archive; no data set here has larger ones.
constexpr uint64_t kMostMemberBytes = 200'000'000;
/// The limit for all files of an archive.
constexpr uint64_t kMostArchiveBytes = 600'000'000;

std::map<std::string, std::string> read_archive(const std::string& path) {
  std::map<std::string, std::string> members;
  UnpackedInput input(std::make_unique<FileInput>(path));
  TarReader reader(input);
  uint64_t total = 0;
  try {
    while (const std::optional<TarMember> member = reader.next()) {
      if (member->is_link) continue;
      std::string name = member->name;
      if (name.starts_with("./")) name.erase(0, 2);
      if ((total += member->size) > kMostArchiveBytes)
        throw Error("holds more than 600 MB; unpack it");
      members[name] = reader.content(kMostMemberBytes);
    }
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.find(path) != std::string::npos) throw;
    throw Error(fmt::format("{}: {}", path, text));
  }
  return members;
}

}  // namespace

DatasetFiles::DatasetFiles(std::string path, const Config& params) : path_(std::move(path)) {
  std::error_code ignored;
  if (fs::is_directory(path_, ignored)) return;
  if (!fs::exists(path_, ignored)) {
    throw params.error("path", "no such folder or archive: " + path_);
  }
  is_archive_ = true;
  members_ = read_archive(path_);
}

bool DatasetFiles::has(const std::string& name) const {
  if (is_archive_) return members_.contains(name);
  std::error_code ignored;
  return fs::is_regular_file(path_ + "/" + name, ignored);
}

DatasetFiles::File DatasetFiles::read(const std::vector<std::string>& names) const {
  for (const auto& name : names) {
    if (!has(name)) continue;
    const std::string where = path_ + "/" + name;
    return {is_archive_ ? members_.at(name) : read_plain_or_gzip(where), where};
  }
  throw Error(fmt::format("{}: no file {}", path_, list_text(names)));
}

}  // namespace stepop
