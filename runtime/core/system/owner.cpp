#include "runtime/core/system/owner.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/core/base/error.h"
#include "runtime/core/system/folders.h"

namespace stepop {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

bool is_foreign(const struct stat& status) {
  return status.st_uid != ::geteuid() && status.st_uid != 0;
}

}  // namespace

std::string foreign_reason(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "";
  if (is_foreign(status)) {
    return fmt::format("it belongs to the user {}", status.st_uid);
  }
  if ((status.st_mode & kOthersWrite) != 0) {
    return fmt::format("others can write it (mode {:o})", status.st_mode & 07777);
  }
  return "";
}

std::optional<uint32_t> user_behind_link(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return std::nullopt;
  if (is_foreign(status)) return status.st_uid;
  if (::stat(path.c_str(), &status) == 0 && is_foreign(status)) return status.st_uid;
  return std::nullopt;
}

void make_private_folder(const std::string& path) {
  const bool is_new = !std::filesystem::exists(path);
  make_folders(path);
  struct stat status {};
  const bool is_own = ::stat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid();
  if (is_own && (is_new || (status.st_mode & kOthersWrite) != 0)) ::chmod(path.c_str(), 0700);
  const std::string reason = foreign_reason(path);
  if (!reason.empty())
    throw Error(fmt::format("{}: {}, so what is in it may be somebody else's", path, reason));
}

}  // namespace stepop
