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

/// The input of H5Dwrite_chunk: the bytes as the filters would produce them.
struct CompressedChunk {
  std::vector<unsigned char> bytes;
  /// Bit i is set when filter i was left out. Both are left out when deflate does not make the
  /// chunk smaller.
  uint32_t skipped_filters = 0;
};

/// zlib's level, out of 9; the default of h5py and HDF5. Level 1 is hardly faster on shuffled
/// floats; level 6 takes up to twice as long and saves a hundredth of the size.
constexpr int kDeflateLevel = 4;

/// Passes a chunk through HDF5's filters shuffle and deflate, in this order: the first bytes of all
/// elements of `element_bytes`, then the second bytes, ..., as one zlib stream.
CompressedChunk compress_chunk(const std::vector<unsigned char>& raw, size_t element_bytes);

/// Compresses chunks in its own threads. May be used by one thread.
class ChunkCompressor {
 public:
  /// Throws Error when a thread cannot start; no threads are left running then.
  explicit ChunkCompressor(int threads);
  /// Drops chunks that no thread has begun.
  ~ChunkCompressor();
  ChunkCompressor(const ChunkCompressor&) = delete;
  ChunkCompressor& operator=(const ChunkCompressor&) = delete;

  /// Returns the result of compress_chunk. Waits while there are two unfinished chunks for each
  /// thread, or 64 MB, which bounds the memory.
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
  size_t unfinished_ = 0;        ///< The number of chunks that wait or are being compressed.
  size_t unfinished_bytes_ = 0;  ///< The bytes of these chunks before compression.
  bool is_closing_ = false;
  std::vector<std::thread> threads_;  // the last member, since threads use the others
};

}  // namespace stepop
