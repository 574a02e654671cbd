#include "runtime/core/system/mapped_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"

namespace stepop {
namespace {

struct stat status_of(const OpenFile& file, const std::string& path) {
  struct stat status = {};
  if (::fstat(file.number(), &status) != 0) fail_file("read " + path, errno);
  return status;
}

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  struct stat status = {};
  file_ = open_regular_file(path_, status);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;  // an empty file cannot be mapped
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_.number(), 0);
  if (data == MAP_FAILED) fail_file("read " + path_, errno);
  data_ = static_cast<const char*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::check_size() const {
  if (size_ == 0) return;
  const auto size = static_cast<size_t>(status_of(file_, path_).st_size);
  if (size >= size_) return;
  throw Error(fmt::format("{}: was cut off while it was in use: it had {} and has {}", path_,
                          size_text(static_cast<double>(size_)),
                          size_text(static_cast<double>(size))));
}

int64_t MappedFile::time() const {
  const struct stat status = status_of(file_, path_);
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace stepop
