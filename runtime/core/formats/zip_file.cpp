#include "runtime/core/formats/zip_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/unpack_limit.h"
#include "runtime/core/formats/inflater.h"

namespace stepop {
namespace {

constexpr std::string_view kEndOfDirectory("PK\5\6", 4);
constexpr std::string_view kLocator64("PK\6\7", 4);
constexpr std::string_view kEndOfDirectory64("PK\6\6", 4);
constexpr std::string_view kDirectoryEntry("PK\1\2", 4);
constexpr std::string_view kLocalEntry("PK\3\4", 4);
constexpr size_t kEndBytes = 22;
constexpr size_t kLocatorBytes = 20;
constexpr size_t kEntryBytes = 46;
constexpr size_t kLocalBytes = 30;
constexpr uint64_t kIn64Bits = 0xffffffff;

class ZipDirectory {
 public:
  ZipDirectory(std::string_view archive, const std::string& name)
      : archive_(archive), name_(name) {}

  std::vector<ZipEntry> read() {
    find();
    std::vector<ZipEntry> entries;
    size_t at = directory_;
    for (uint64_t i = 0; i < count_; ++i) {
      if (!has(at, kDirectoryEntry, kEntryBytes)) fail("its directory is damaged");
      const size_t name_size = number(at + 28, 2);
      const size_t extra_size = number(at + 30, 2);
      const size_t size = kEntryBytes + name_size + extra_size + number(at + 32, 2);
      if (size > archive_.size() - at) fail("its directory is cut short");
      ZipEntry entry = entry_at(at, archive_.substr(at + kEntryBytes, name_size),
                                archive_.substr(at + kEntryBytes + name_size, extra_size));
      if (!entry.name.ends_with('/')) entries.push_back(std::move(entry));
      at += size;
    }
    check_overlaps();
    return entries;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}: {}; copy or download it again", name_, what));
  }

  /// Entries that share bytes are how a small archive holds more than the memory.
  void check_overlaps() {
    std::ranges::sort(parts_);
    for (size_t i = 1; i < parts_.size(); ++i) {
      if (parts_[i].first < parts_[i - 1].second) fail("its entries overlap");
    }
  }

  bool has(size_t at, std::string_view signature, size_t size) const {
    return at <= archive_.size() && archive_.size() - at >= size &&
           archive_.substr(at).starts_with(signature);
  }

  /// Reads a little-endian number.
  uint64_t number(size_t at, size_t bytes) const {
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(archive_[at + i]);
    }
    return value;
  }

  /// Finds the directory through the record at the end of the archive.
  void find() {
    constexpr size_t kLongestComment = 65'535;
    const size_t most = std::min(archive_.size(), kEndBytes + kLongestComment);
    const size_t found = archive_.substr(archive_.size() - most).rfind(kEndOfDirectory);
    const size_t end = found == std::string_view::npos ? 0 : archive_.size() - most + found;
    if (found == std::string_view::npos || !has(end, kEndOfDirectory, kEndBytes)) {
      fail("expected a ZIP archive, found no directory at its end");
    }
    count_ = number(end + 10, 2);
    directory_ = number(end + 16, 4);
    const bool is_64 = directory_ == kIn64Bits || count_ == 0xffff;
    if (is_64 && end >= kLocatorBytes && has(end - kLocatorBytes, kLocator64, kLocatorBytes)) {
      const uint64_t at = number(end - kLocatorBytes + 8, 8);
      constexpr size_t kEnd64Bytes = 56;
      if (!has(at, kEndOfDirectory64, kEnd64Bytes)) fail("its directory is damaged");
      count_ = number(at + 32, 8);
      directory_ = number(at + 48, 8);
    }
    if (count_ > archive_.size() / kEntryBytes) fail("its directory is damaged");
  }

  ZipEntry entry_at(size_t at, std::string_view name, std::string_view extra) {
    ZipEntry entry;
    entry.name = name;
    const std::string where = fmt::format("\"{}\"", entry.name);
    if ((number(at + 8, 2) & 1) != 0) fail(where + " is encrypted");
    const uint64_t packing = number(at + 10, 2);
    if (packing != 0 && packing != 8) {
      throw Error(
          fmt::format("{}: {} is packed by method {}; expected deflate or none, as "
                      "np.savez_compressed and np.savez write them",
                      name_, where, packing));
    }
    entry.is_stored = packing == 0;
    entry.crc = static_cast<uint32_t>(number(at + 16, 4));
    uint64_t packed = number(at + 20, 4);
    uint64_t size = number(at + 24, 4);
    uint64_t begin = number(at + 42, 4);
    take_64(extra, {&size, &packed, &begin});
    if (!has(begin, kLocalEntry, kLocalBytes)) fail(where + " is not where the directory says");
    const uint64_t skipped = kLocalBytes + number(begin + 26, 2) + number(begin + 28, 2);
    const uint64_t left = archive_.size() - begin;
    if (skipped > left || packed > left - skipped) fail(where + " is cut short");
    if (entry.is_stored && size != packed) fail("the size of " + where + " is damaged");
    parts_.emplace_back(begin, begin + skipped + packed);
    entry.begin = begin + skipped;
    entry.packed_size = packed;
    entry.size = size;
    return entry;
  }

  /// Replaces the numbers that are 0xffffffff by 64-bit numbers, which `extra` has in this order.
  void take_64(std::string_view extra, std::initializer_list<uint64_t*> numbers) const {
    const auto start = static_cast<size_t>(extra.data() - archive_.data());
    for (size_t at = 0; at + 4 <= extra.size();) {
      const uint64_t id = number(start + at, 2);
      const size_t end = std::min<size_t>(at + 4 + number(start + at + 2, 2), extra.size());
      at += 4;
      if (id == 1) {
        for (uint64_t* one : numbers) {
          if (*one != kIn64Bits || at + 8 > end) continue;
          *one = number(start + at, 8);
          at += 8;
        }
      }
      at = end;
    }
  }

  std::string_view archive_;
  const std::string& name_;
  uint64_t count_ = 0;
  uint64_t directory_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> parts_ = {};  ///< From where to where an entry lies.
};

uint32_t crc_of(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

[[noreturn]] void fail_checksum(const std::string& name) {
  throw Error(name +
              ": its bytes have another checksum than the archive says; copy or download it "
              "again");
}

}  // namespace

std::vector<ZipEntry> list_zip(std::string_view archive, const std::string& name) {
  return ZipDirectory(archive, name).read();
}

void check_zip_entry(std::string_view archive, const ZipEntry& entry, const std::string& name) {
  if (crc_of(archive.substr(entry.begin, entry.size)) != entry.crc) fail_checksum(name);
}

std::string unpack_zip_entry(std::string_view archive, const ZipEntry& entry,
                             const std::string& name) {
  const auto unpacked = static_cast<double>(entry.size);
  if (entry.size / kMostInOneByte > entry.packed_size) {
    throw Error(name + ": its size is damaged; copy or download it again");
  }
  if (is_too_much_unpacked(unpacked, static_cast<double>(entry.packed_size))) {
    throw Error(fmt::format("{}: {} unpack to {}: {}", name,
                            size_text(static_cast<double>(entry.packed_size)), size_text(unpacked),
                            unpack_remedy(unpacked)));
  }
  Inflater inflater(Inflater::Kind::kDeflate);
  std::string bytes;
  bytes.resize(entry.size);
  std::string_view left = archive.substr(entry.begin, entry.packed_size);
  size_t done = 0;
  Inflater::Step step;
  do {
    step = inflater.unpack(left, bytes.data() + done, bytes.size() - done);
    left.remove_prefix(step.taken);
    done += step.given;
  } while (!step.is_at_end && !step.is_stuck() && step.damage.empty());
  if (!step.is_at_end || done != bytes.size()) {
    throw Error(name + ": the packed data is corrupt or cut short; copy or download it again");
  }
  if (crc_of(bytes) != entry.crc) fail_checksum(name);
  return bytes;
}

}  // namespace stepop
