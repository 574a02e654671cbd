#include "runtime/core/formats/gzip_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string_view>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/unpack_limit.h"

namespace stepop {
namespace {

constexpr std::string_view kMagic = "\x1f\x8b";
constexpr size_t kFilePieceBytes = 1 << 18;

}  // namespace

PlainOrGzip::PlainOrGzip(std::string path) : path_(std::move(path)) {
  struct stat status = {};
  file_ = open_regular_file(path_, status);
  size_ = static_cast<uint64_t>(status.st_size);
  const auto bytes = static_cast<double>(size_);
  constexpr double kBlockBytes = 512;
  // Some file systems report 0 for all files.
  if (status.st_blocks > 0 &&
      is_too_much_unpacked(bytes, kBlockBytes * static_cast<double>(status.st_blocks))) {
    throw Error(fmt::format("{}: it has {}, of which the disk stores next to nothing: {}", path_,
                            size_text(bytes), unpack_remedy(bytes)));
  }
  fill();
  if (stored_.starts_with(kMagic)) inflater_.emplace(Inflater::Kind::kGzip);
}

uint64_t PlainOrGzip::most_bytes() const {
  if (!is_gzip()) return size_;
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  return size_ > kMost / kMostInOneByte ? kMost : size_ * kMostInOneByte;
}

size_t PlainOrGzip::read_stored(char* target, size_t size) {
  while (true) {
    const ssize_t count = ::read(file_.number(), target, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) fail_file("read " + path_, errno);
  }
}

/// Reads the next piece and appends it to the unread bytes.
void PlainOrGzip::fill() {
  stored_.erase(0, std::exchange(begin_, 0));
  const size_t left = stored_.size();
  stored_.resize(left + kFilePieceBytes);
  stored_.resize(left + read_stored(stored_.data() + left, kFilePieceBytes));
}

size_t PlainOrGzip::read(char* target, size_t size) {
  size_t done = 0;
  if (is_gzip()) {
    done = unpack(target, size);
  } else {
    done = std::min(size, stored_.size() - begin_);
    std::copy_n(stored_.data() + begin_, done, target);
    begin_ += done;
    while (done < size) {
      const size_t count = read_stored(target + done, size - done);
      if (count == 0) break;
      done += count;
    }
  }
  given_ += done;
  return done;
}

void PlainOrGzip::check_size(uint64_t unpacked) const {
  const auto taken = static_cast<double>(taken_);
  if (!is_too_much_unpacked(static_cast<double>(unpacked), taken)) return;
  const auto whole = static_cast<double>(unpacked) * static_cast<double>(size_) / taken;
  throw Error(fmt::format("{}: its first {} unpack to {}: {}", path_, size_text(taken),
                          size_text(static_cast<double>(unpacked)), unpack_remedy(whole)));
}

/// Another member, or padding with zeros, may follow a member.
bool PlainOrGzip::has_another_member() {
  if (stored_.size() - begin_ < kMagic.size()) fill();
  if (std::string_view(stored_).substr(begin_).starts_with(kMagic)) return true;
  while (begin_ < stored_.size()) {
    begin_ = stored_.find_first_not_of('\0', begin_);
    if (begin_ != std::string::npos) {
      throw Error(fmt::format("{}: {} bytes that are not gzip follow the gzip data", path_,
                              size_ - taken_));
    }
    begin_ = stored_.size();
    fill();
  }
  return false;
}

size_t PlainOrGzip::unpack(char* target, size_t size) {
  size_t done = 0;
  while (done < size && !is_at_end_) {
    if (begin_ == stored_.size()) fill();
    const bool has_more = begin_ < stored_.size();
    const auto step =
        inflater_->unpack(std::string_view(stored_).substr(begin_), target + done, size - done);
    begin_ += step.taken;
    taken_ += step.taken;
    done += step.given;
    check_size(given_ + done);
    if (step.is_at_end) {
      is_at_end_ = !has_another_member();
      inflater_->reset();
    } else if (!step.damage.empty()) {
      throw Error(fmt::format("{}: the gzip data is corrupt ({}); copy or download it again", path_,
                              step.damage));
    } else if (!has_more && step.is_stuck()) {
      throw Error(fmt::format(
          "{}: the gzip data is cut short: the file ends after {} bytes, which hold {}; copy or "
          "download it again",
          path_, size_, given_ + done));
    }
  }
  return done;
}

std::string read_plain_or_gzip(const std::string& path) {
  PlainOrGzip file(path);
  std::string bytes;
  // With room for one extra byte, the end of a plain file is found without another round.
  size_t room = file.is_gzip() ? kFilePieceBytes : file.most_bytes() + 1;
  constexpr size_t kMostRoom = 1 << 26;  // the room is filled with zeros before the read
  for (size_t size = 0;; room = std::min(bytes.size(), kMostRoom)) {
    bytes.resize(size + room);
    const size_t count = file.read(bytes.data() + size, room);
    size += count;
    if (count == room) continue;
    bytes.resize(size);
    return bytes;
  }
}

}  // namespace stepop
