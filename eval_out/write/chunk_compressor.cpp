#include "eval_out/write/chunk_compressor.h"

#include <zlib.h>

#include <exception>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/system/start_thread.h"

namespace stepop {
namespace {

constexpr size_t kMostUnfinishedBytes = 64'000'000;
constexpr uint32_t kBothFilters = 0b11;

std::vector<unsigned char> shuffle(const std::vector<unsigned char>& raw, size_t element_bytes) {
  std::vector<unsigned char> shuffled(raw.size());
  const size_t count = raw.size() / element_bytes;
  unsigned char* to = shuffled.data();
  for (size_t byte = 0; byte < element_bytes; ++byte) {
    const unsigned char* from = raw.data() + byte;
    for (size_t i = 0; i < count; ++i, from += element_bytes) *to++ = *from;
  }
  return shuffled;
}

}  // namespace

CompressedChunk compress_chunk(const std::vector<unsigned char>& raw, size_t element_bytes) {
  const std::vector<unsigned char> shuffled =
      element_bytes > 1 ? shuffle(raw, element_bytes) : std::vector<unsigned char>();
  const std::vector<unsigned char>& from = element_bytes > 1 ? shuffled : raw;
  CompressedChunk chunk;
  chunk.bytes.resize(raw.size());
  uLongf size = chunk.bytes.size();
  const int result = compress2(chunk.bytes.data(), &size, from.data(), from.size(), kDeflateLevel);
  if (result == Z_BUF_ERROR) return {raw, kBothFilters};  // it would be longer
  if (result != Z_OK) throw Error("zlib cannot compress: it is out of memory");
  chunk.bytes.resize(size);
  chunk.bytes.shrink_to_fit();
  return chunk;
}

ChunkCompressor::ChunkCompressor(int threads) {
  try {
    for (int i = 0; i < threads; ++i) {
      threads_.push_back(start_thread("compresses outputs", [this] { run(); }));
    }
  } catch (const Error&) {
    close();
    throw;
  }
}

ChunkCompressor::~ChunkCompressor() { close(); }

void ChunkCompressor::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

std::future<CompressedChunk> ChunkCompressor::compress(std::vector<unsigned char> raw,
                                                       size_t element_bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return unfinished_ == 0 || (unfinished_ < 2 * threads_.size() &&
                                unfinished_bytes_ + raw.size() <= kMostUnfinishedBytes);
  });
  ++unfinished_;
  unfinished_bytes_ += raw.size();
  waiting_.push_back({std::move(raw), element_bytes, {}});
  std::future<CompressedChunk> result = waiting_.back().result.get_future();
  changed_.notify_all();
  return result;
}

void ChunkCompressor::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !waiting_.empty() || is_closing_; });
    if (is_closing_) return;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const size_t bytes = job.raw.size();
    try {
      job.result.set_value(compress_chunk(job.raw, job.element_bytes));
    } catch (...) {
      job.result.set_exception(std::current_exception());
    }
    job = {};
    lock.lock();
    --unfinished_;
    unfinished_bytes_ -= bytes;
    changed_.notify_all();
  }
}

}  // namespace stepop
