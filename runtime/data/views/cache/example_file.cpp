#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/system/file_lock.h"
#include "runtime/data/views/cache/example_bytes.h"
#include "runtime/data/views/cache/example_store.h"

namespace stepop {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kRecordHeader = 64;
/// One write call writes at most this many bytes.
constexpr int64_t kMostRecord = 0x7ffff000;

struct TableEntry {
  uint64_t begin = 0;
  uint64_t length = 0;
};

std::string header_of(const std::string& description, int64_t examples) {
  const auto with_table = [&](size_t table) {
    return fmt::format("stepop examples 1 {} {}\n{}", examples, table, description);
  };
  // The number of digits of the table's beginning is not known yet; one more page has room for any
  // number.
  const size_t table = (with_table(0).size() / kPage + 2) * kPage;
  std::string header = with_table(table);
  header.resize(table, '\n');
  return header;
}

/// Reads all of `size` bytes at `begin`; false at an early end and for an error.
bool read_at(const OpenFile& file, void* data, size_t size, uint64_t begin) {
  auto* to = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t count = ::pread(file.number(), to, size, static_cast<off_t>(begin));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    size -= static_cast<size_t>(count);
    begin += static_cast<uint64_t>(count);
  }
  return true;
}

int64_t file_size(const OpenFile& file) {
  struct stat status = {};
  return ::fstat(file.number(), &status) == 0 ? status.st_size : 0;
}

/// The checksum of the index and of the bytes after the record's header.
std::string record_checksum(int64_t index, std::string_view example) {
  Checksum sum;
  sum.add({reinterpret_cast<const char*>(&index), sizeof index});
  sum.add(example);
  return sum.text();
}

/// Only one process at a time makes the file, so that two runs that start together fill the same
/// file. On a filesystem without locks the later run replaces the file, and the other run's work is
/// lost.
std::optional<FileLock> lock_of(const std::string& path) {
  try {
    return std::optional<FileLock>(std::in_place, path + ".lock");
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Appends `bytes` in one piece and returns their offset. Other processes may append too.
int64_t append_whole(const OpenFile& file, std::string_view bytes, const std::string& path) {
  size_t written = 0;
  off_t begin = 0;
  while (written < bytes.size()) {
    const ssize_t count =
        file_calls().write(file.number(), bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_file("write the cache " + path, errno);
    const off_t end = ::lseek(file.number(), 0, SEEK_CUR);
    if (written == 0) begin = end - count;
    const bool is_next = begin + static_cast<off_t>(written) == end - count;
    // If another process's record came between, the write begins again.
    written = is_next ? written + static_cast<size_t>(count) : 0;
  }
  return begin;
}

}  // namespace

ExampleFile::ExampleFile(std::string path, const std::string& description, int64_t examples,
                         int64_t limit)
    : path_(std::move(path)), examples_(examples), limit_(limit) {
  const std::string header = header_of(description, examples);
  table_ = static_cast<int64_t>(header.size());
  if (open(header)) return;
  const std::optional<FileLock> lock = lock_of(path_);
  if (open(header)) return;
  make(header);
  if (!open(header)) {
    throw Error(fmt::format("cannot open the cache {}, which was just made", path_));
  }
}

bool ExampleFile::open(const std::string& header) {
  const auto open_with = [&](int flags) {
    return OpenFile(file_calls().open(path_.c_str(), flags | O_CLOEXEC, 0));
  };
  file_ = open_with(O_RDWR);
  const bool can_write = static_cast<bool>(file_);
  if (!can_write) file_ = open_with(O_RDONLY);
  if (!file_) {
    if (errno != ENOENT) fail_file("open the cache " + path_, errno);
    return false;
  }
  std::string found(header.size(), '\0');
  const int64_t table_end = table_ + examples_ * static_cast<int64_t>(sizeof(TableEntry));
  if (!read_at(file_, found.data(), found.size(), 0) || found != header ||
      file_size(file_) < table_end) {
    return false;
  }
  if (can_write) append_ = open_with(O_WRONLY | O_APPEND);
  return true;
}

void ExampleFile::make(const std::string& header) const {
  AtomicFile file(path_);
  file.write(header);
  const std::string zeros(size_t{1} << 20, '\0');
  for (auto rest = static_cast<size_t>(examples_) * sizeof(TableEntry); rest > 0;) {
    const size_t count = std::min(rest, zeros.size());
    file.write({zeros.data(), count});
    rest -= count;
  }
  file.commit();
}

std::optional<Example> ExampleFile::find(int64_t index) const {
  TableEntry entry;
  const uint64_t place =
      static_cast<uint64_t>(table_) + static_cast<uint64_t>(index) * sizeof entry;
  if (!read_at(file_, &entry, sizeof entry, place) || entry.begin == 0) return std::nullopt;
  const auto end = static_cast<uint64_t>(file_size(file_));
  if (entry.length < kRecordHeader || entry.length > static_cast<uint64_t>(kMostRecord) ||
      entry.begin > end || entry.length > end - entry.begin) {
    return std::nullopt;
  }
  const at::Tensor bytes = at::empty({static_cast<int64_t>(entry.length)}, at::kByte);
  auto* data = static_cast<char*>(bytes.mutable_data_ptr());
  if (!read_at(file_, data, entry.length, entry.begin)) return std::nullopt;
  int64_t its_index = 0;
  std::memcpy(&its_index, data, sizeof its_index);
  const std::string_view whole(data, entry.length);
  const std::string_view sum = whole.substr(sizeof its_index, Checksum::kDigits);
  if (its_index != index || sum != record_checksum(index, whole.substr(kRecordHeader))) {
    return std::nullopt;
  }
  return example_in(bytes, kRecordHeader);
}

void ExampleFile::add(int64_t index, const Example& example) {
  if (!append_) return;
  std::string record(kRecordHeader, '\0');
  append_example(example, record);
  const auto size = static_cast<int64_t>(record.size());
  if (size > kMostRecord) return;
  std::memcpy(record.data(), &index, sizeof index);
  const std::string sum = record_checksum(index, std::string_view(record).substr(kRecordHeader));
  std::memcpy(record.data() + sizeof index, sum.data(), sum.size());
  const std::lock_guard lock(mutex_);
  if (file_size(file_) + size > limit_ || find(index)) return;
  const TableEntry entry{static_cast<uint64_t>(append_whole(append_, record, path_)),
                         static_cast<uint64_t>(size)};
  const off_t place = table_ + index * static_cast<int64_t>(sizeof entry);
  if (::lseek(file_.number(), place, SEEK_SET) < 0) fail_file("write the cache " + path_, errno);
  size_t written = 0;
  const int failure =
      write_all(file_, {reinterpret_cast<const char*>(&entry), sizeof entry}, written);
  if (failure != 0) fail_file("write the cache " + path_, failure);
}

int64_t ExampleFile::count() const {
  std::array<TableEntry, kPage> entries;
  int64_t count = 0;
  for (int64_t first = 0; first < examples_; first += static_cast<int64_t>(entries.size())) {
    const auto some = std::min(static_cast<size_t>(examples_ - first), entries.size());
    const int64_t place = table_ + first * static_cast<int64_t>(sizeof(TableEntry));
    if (!read_at(file_, entries.data(), some * sizeof(TableEntry), static_cast<uint64_t>(place))) {
      break;
    }
    count += std::count_if(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(some),
                           [](const TableEntry& entry) { return entry.begin != 0; });
  }
  return count;
}

}  // namespace stepop
