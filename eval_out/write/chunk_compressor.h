#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace stepop {

/// What H5Dwrite_chunk takes: the bytes as the filters would have made them.
struct CompressedChunk {
  std::vector<unsigned char> bytes;
  /// Bit i is set when filter i was left out: both, when deflating made nothing smaller.
  uint32_t skipped_filters = 0;
};

/// zlib's level, of 9; h5py's and HDF5's own default. Level 1 is hardly faster on shuffled floats,
/// 6 takes up to twice as long for a hundredth of the size.
constexpr int kDeflateLevel = 4;

/// Passes a chunk through HDF5's filters shuffle and deflate, in this order: the first bytes of all
/// elements of `element_bytes`, the second ones, ..., as one zlib stream.
CompressedChunk compress_chunk(const std::vector<unsigned char>& raw, size_t element_bytes);

/// Compresses chunks in threads of its own. May be used by one thread.
class ChunkCompressor {
 public:
  /// Throws Error, with none left running, when a thread cannot start.
  explicit ChunkCompressor(int threads);
  /// Leaves out what no thread has begun.
  ~ChunkCompressor();
  ChunkCompressor(const ChunkCompressor&) = delete;
  ChunkCompressor& operator=(const ChunkCompressor&) = delete;

  /// What compress_chunk makes of it. Waits while there are two chunks for each thread, or 64 MB:
  /// what bounds the memory.
  std::future<CompressedChunk> compress(std::vector<unsigned char> raw, size_t element_bytes);

 private:
  struct Job {
    std::vector<unsigned char> raw;
    size_t element_bytes = 0;
    std::promise<CompressedChunk> result;
  };

  void run();
  void close();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  size_t unfinished_ = 0;        ///< Chunks that wait or are worked on.
  size_t unfinished_bytes_ = 0;  ///< Theirs, before they are compressed.
  bool is_closing_ = false;
  std::vector<std::thread> threads_;  // last: they use the others
};

}  // namespace stepop
