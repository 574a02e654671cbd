#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "eval_out/write/chunk_compressor.h"
#include "eval_out/write/eval_arrays.h"

namespace stepop {

/// For each array the rows of a chunk, or 0 for one that is not compressed: text, ragged arrays,
/// and rows of less than 64 bytes or more than 1 GiB. A chunk has whole rows and at most 1 MB, or
/// one row. All rows of a chunk come into the file at once; so the numbers are divisors of the
/// batch size or, when a batch of the largest rows has less than 256 KB, one multiple of it for all
/// arrays.
std::vector<int64_t> rows_of_chunks(const std::vector<EvalArray>& arrays, int64_t batch_size,
                                    int64_t rows);

/// The compressed arrays of a file. Chunks are compressed in other threads while batches come; what
/// they made is written when it is there. The chunk index is there from the start, with a chunk of
/// zeros in all places, which take about a thousandth of the raw bytes; writing a chunk changes its
/// entry in the index, and no other part of the structure.
class CompressedArrays {
 public:
  /// Below this a free place in a file with compressed arrays must not be used again, see
  /// eval_out/README.md: one that was a chunk of zeros.
  static constexpr int64_t kMinFreePlace = int64_t{64} << 10;

  /// Creates the array, whose batches are the column `column`, for `rows` rows. With a Hdf5Lock.
  void create(hid_t file, const EvalArray& array, size_t column, int64_t rows, int64_t chunk_rows);

  /// Resumes `dataset` behind its first `first_row` rows; throws Error when a chunk does not
  /// end there. With a Hdf5Lock.
  void open(Hdf5Id dataset, const EvalArray& array, size_t column, int64_t first_row);

  bool empty() const { return arrays_.empty(); }

  /// Adds a batch. Waits for other threads, so without a Hdf5Lock.
  void add(const std::vector<EvalColumn>& columns);
  /// Waits until all full chunks are compressed, and the last one, if it is not full, with
  /// `is_last`. Without a Hdf5Lock.
  void settle(bool is_last);

  /// By how many bytes the next `write` makes the file longer.
  int64_t growth() const;
  /// By how many, about, all that are not written yet do, with what the next one writes.
  int64_t growth_to_come() const;
  /// Writes what is compressed. With a Hdf5Lock.
  void write();

  /// Rows that are in the file in all of the arrays; a multiple of `step`, or all of them.
  int64_t written_rows(int64_t step) const;
  /// The least number of rows that are whole chunks of all arrays, and whole batches.
  int64_t rows_at_once(int64_t batch_size) const;

  /// Closes them. With a Hdf5Lock.
  void clear() { arrays_.clear(); }

 private:
  struct Array {
    std::string key;
    size_t column;
    Hdf5Id dataset;
    int64_t rows;
    int64_t chunk_rows;
    size_t row_bytes;
    size_t element_bytes;
    size_t dimensions;
    int64_t next_row;                      ///< Where the next chunk belongs in the file.
    std::vector<unsigned char> open = {};  ///< The chunk that is filled, in its full size.
    int64_t open_rows = 0;                 ///< So many rows of it.
    std::deque<std::future<CompressedChunk>> compressing = {};
    std::deque<CompressedChunk> compressed = {};  ///< To be written.
  };

  void keep(Hdf5Id dataset, const EvalArray& array, size_t column, int64_t first_row);
  void add(Array& array, const EvalColumn& column);
  void close_chunk(Array& array);
  static int64_t compressed_bytes(const Array& array);

  std::vector<Array> arrays_;
  std::unique_ptr<ChunkCompressor> compressor_;
};

}  // namespace stepop
