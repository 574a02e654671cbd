#include "runtime/core/formats/byte_input.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b";
constexpr size_t kInputBytes = 1 << 17;

}  // namespace

uint64_t ByteInput::skip(uint64_t size) {
  std::array<char, 65536> buffer{};
  uint64_t done = 0;
  while (done < size) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(buffer.size(), size - done));
    const size_t count = read(buffer.data(), wanted);
    done += count;
    if (count < wanted) break;
  }
  return done;
}

FileInput::FileInput(std::string path) : path_(std::move(path)) {
  struct stat status = {};
  file_ = open_regular_file(path_, status);
  size_ = static_cast<uint64_t>(status.st_size);
}

void FileInput::fill() {
  begin_ = 0;
  buffer_.resize(kInputBytes);
  ssize_t count = -1;
  while ((count = ::read(file_.number(), buffer_.data(), buffer_.size())) < 0 && errno == EINTR) {
  }
  if (count < 0) fail_file("read " + path_, errno);
  buffer_.resize(static_cast<size_t>(count));
  position_ += buffer_.size();
}

size_t FileInput::read(char* target, size_t size) {
  size_t done = 0;
  while (done < size) {
    if (begin_ == buffer_.size()) fill();
    if (buffer_.empty()) break;
    const size_t count = std::min(size - done, buffer_.size() - begin_);
    std::copy_n(buffer_.data() + begin_, count, target + done);
    begin_ += count;
    done += count;
  }
  return done;
}

uint64_t FileInput::skip(uint64_t size) {
  const uint64_t here = position_ - (buffer_.size() - begin_);
  const uint64_t count = std::min(size, size_ > here ? size_ - here : 0);
  if (count <= buffer_.size() - begin_) {
    begin_ += static_cast<size_t>(count);
  } else {
    seek(here + count);
  }
  return count;
}

void FileInput::seek(uint64_t offset) {
  position_ = std::min(offset, size_);
  buffer_.clear();
  begin_ = 0;
  if (::lseek(file_.number(), static_cast<off_t>(position_), SEEK_SET) < 0) {
    fail_file("read " + path_, errno);
  }
}

UnpackedInput::UnpackedInput(std::unique_ptr<ByteInput> input) : input_(std::move(input)) {
  stored_.resize(kGzip.size());
  stored_.resize(input_->read(stored_.data(), stored_.size()));
  if (stored_ == kGzip) inflater_.emplace(Inflater::Kind::kGzip);
}

void UnpackedInput::fill() {
  stored_.resize(kInputBytes);
  begin_ = 0;
  stored_.resize(input_->read(stored_.data(), stored_.size()));
}

/// Copies the stored bytes unchanged.
size_t UnpackedInput::take(char* target, size_t size) {
  const size_t count = std::min(size, stored_.size() - begin_);
  std::copy_n(stored_.data() + begin_, count, target);
  begin_ += count;
  return count;
}

uint64_t UnpackedInput::skip(uint64_t size) {
  if (is_gzip()) return ByteInput::skip(size);
  const uint64_t here = std::min<uint64_t>(size, stored_.size() - begin_);
  begin_ += static_cast<size_t>(here);
  return here + (size > here ? input_->skip(size - here) : 0);
}

size_t UnpackedInput::read(char* target, size_t size) {
  if (!is_gzip()) {
    const size_t count = take(target, size);
    return count + (count < size ? input_->read(target + count, size - count) : 0);
  }
  size_t done = 0;
  while (done < size) {
    if (begin_ == stored_.size()) fill();
    const bool has_more = begin_ < stored_.size();
    if (is_at_end_) {
      // Another member, or padding with zeros, may follow a member.
      if (!has_more || stored_[begin_] != kGzip[0]) break;
      inflater_->reset();
    }
    const auto step =
        inflater_->unpack(std::string_view(stored_).substr(begin_), target + done, size - done);
    begin_ += step.taken;
    done += step.given;
    is_at_end_ = step.is_at_end;
    if (!step.damage.empty()) {
      throw DamagedInput(fmt::format("the gzip data is corrupt ({})", step.damage));
    }
    if (!is_at_end_ && !has_more) throw DamagedInput("the gzip data is cut short");
  }
  return done;
}

}  // namespace stepop
