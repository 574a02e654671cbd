#include "runtime/core/formats/inflater.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "runtime/core/base/error.h"

namespace stepop {

void Inflater::End::operator()(z_stream* stream) const {
  inflateEnd(stream);
  delete stream;
}

Inflater::Inflater(Kind kind) : stream_(new z_stream{}) {
  constexpr int kGzipHeader = 16;  // requires gzip's header and checksum
  const int window = kind == Kind::kGzip ? kGzipHeader + MAX_WBITS : -MAX_WBITS;
  if (inflateInit2(stream_.get(), window) != Z_OK) throw Error("zlib cannot be started");
}

Inflater::Step Inflater::unpack(std::string_view input, char* target, size_t size) {
  // zlib counts in 32 bits and takes its input through a pointer that is not const.
  constexpr size_t kMost = std::numeric_limits<uInt>::max();
  const size_t in = std::min(input.size(), kMost);
  const size_t out = std::min(size, kMost);
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
  stream_->avail_in = static_cast<uInt>(in);
  stream_->next_out = reinterpret_cast<Bytef*>(target);
  stream_->avail_out = static_cast<uInt>(out);
  const int result = inflate(stream_.get(), Z_NO_FLUSH);
  Step step{.taken = in - stream_->avail_in,
            .given = out - stream_->avail_out,
            .is_at_end = result == Z_STREAM_END};
  if (result != Z_OK && result != Z_BUF_ERROR && !step.is_at_end) {
    step.damage = stream_->msg == nullptr ? zError(result) : stream_->msg;
  }
  return step;
}

void Inflater::reset() { inflateReset(stream_.get()); }

}  // namespace stepop
