#include "runtime/formats/byte_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "runtime/base/error.h"

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

FileInput::FileInput(std::string path)
    // Without O_NONBLOCK it would wait for who writes into a pipe.
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!file_) fail_file("read " + path_, errno);
  struct stat status = {};
  if (::fstat(file_.number(), &status) != 0) fail_file("read " + path_, errno);
  if (S_ISDIR(status.st_mode)) fail_file("read " + path_, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw Error(fmt::format("cannot read {}: it is a pipe or a device, not a regular file", path_));
  }
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

/// Ends zlib's stream whatever happens.
struct UnpackedInput::Inflater {
  z_stream stream = {};

  Inflater() {
    constexpr int kGzipHeader = 16;
    if (inflateInit2(&stream, kGzipHeader + MAX_WBITS) != Z_OK) {
      throw Error("zlib cannot be started");
    }
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

UnpackedInput::UnpackedInput(std::unique_ptr<ByteInput> input) : input_(std::move(input)) {
  stored_.resize(kGzip.size());
  stored_.resize(input_->read(stored_.data(), stored_.size()));
  if (stored_ == kGzip) inflater_ = std::make_unique<Inflater>();
}

UnpackedInput::~UnpackedInput() = default;

void UnpackedInput::fill() {
  stored_.resize(kInputBytes);
  begin_ = 0;
  stored_.resize(input_->read(stored_.data(), stored_.size()));
}

/// What is stored, as it is.
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
  z_stream& stream = inflater_->stream;
  size_t done = 0;
  while (done < size) {
    if (begin_ == stored_.size()) fill();
    const bool has_more = begin_ < stored_.size();
    if (is_at_end_) {
      // Behind a member there may be another one, or padding with zeros.
      if (!has_more || stored_[begin_] != kGzip[0]) break;
      inflateReset(&stream);
      is_at_end_ = false;
    }
    const size_t output = std::min<size_t>(size - done, std::numeric_limits<uInt>::max());
    // zlib takes its input through a pointer that is not const.
    stream.next_in = reinterpret_cast<Bytef*>(stored_.data() + begin_);
    stream.avail_in = static_cast<uInt>(stored_.size() - begin_);
    stream.next_out = reinterpret_cast<Bytef*>(target + done);
    stream.avail_out = static_cast<uInt>(output);
    const int result = inflate(&stream, Z_NO_FLUSH);
    begin_ = stored_.size() - stream.avail_in;
    done += output - stream.avail_out;
    if (result == Z_STREAM_END) {
      is_at_end_ = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw DamagedInput(fmt::format("the gzip data is corrupt ({})",
                                     stream.msg == nullptr ? zError(result) : stream.msg));
    } else if (!has_more) {
      throw DamagedInput("the gzip data is cut short");
    }
  }
  return done;
}

}  // namespace stepop
