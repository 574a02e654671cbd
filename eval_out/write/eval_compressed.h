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

/// For each array, the number of rows in a chunk, or 0 for an array that is not compressed: text,
/// ragged arrays, and rows of less than 64 bytes or more than 1 GiB. A chunk has whole rows and at
/// most 1 MB, or one row. All rows of a chunk are written at once. So the numbers of rows divide
/// the batch size or, when a batch of the largest rows has less than 256 KB, are one multiple of
/// the batch size for all arrays.
std::vector<int64_t> rows_of_chunks(const std::vector<EvalArray>& arrays, int64_t batch_size,
                                    int64_t rows);

/// The compressed arrays of a file. Chunks are compressed in other threads while batches arrive,
/// and written when they are ready. The chunk index is complete from the start, with a chunk of
/// zeros in all places, which take about a thousandth of the raw bytes. Writing a chunk changes
/// only its entry in the index and no other part of the structure.
class CompressedArrays {
 public:
  /// A smaller free place in a file with compressed arrays must not be used again, since it may
  /// have been a chunk of zeros; see eval_out/README.md.
  static constexpr int64_t kMinFreePlace = int64_t{64} << 10;

  /// Creates the array for `rows` rows; its data is the column `column` of each batch. Needs a
  /// Hdf5Lock.
  void create(hid_t file, const EvalArray& array, size_t column, int64_t rows, int64_t chunk_rows);

  /// Resumes `dataset` after its first `first_row` rows; throws Error when no chunk ends there.
  /// Needs a Hdf5Lock.
  void open(Hdf5Id dataset, const EvalArray& array, size_t column, int64_t first_row);

  bool empty() const { return arrays_.empty(); }

  /// Adds a batch. Waits for other threads, so the caller must not hold a Hdf5Lock.
  void add(const std::vector<EvalColumn>& columns);
  /// Waits until all full chunks are compressed; with `is_last` also the last chunk, even if it is
  /// not full. The caller must not hold a Hdf5Lock.
  void settle(bool is_last);

  /// The number of bytes by which the next `write` makes the file longer.
  int64_t growth() const;
  /// The approximate number of bytes by which all unwritten chunks will make the file longer,
  /// including the next `write`.
  int64_t growth_to_come() const;
  /// Writes the compressed chunks. Needs a Hdf5Lock.
  void write();

  /// The number of rows that are in the file for all arrays; a multiple of `step`, or all rows.
  int64_t written_rows(int64_t step) const;
  /// The smallest number of rows that consists of whole chunks of all arrays and of whole batches.
  int64_t rows_at_once(int64_t batch_size) const;

  /// Closes the arrays. Needs a Hdf5Lock.
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
    int64_t next_row;                      ///< The row in the file at which the next chunk begins.
    std::vector<unsigned char> open = {};  ///< The chunk that is being filled, in its full size.
    int64_t open_rows = 0;                 ///< The number of rows that are filled in `open`.
    std::deque<std::future<CompressedChunk>> compressing = {};
    std::deque<CompressedChunk> compressed = {};  ///< Chunks that are ready to be written.
  };

  void keep(Hdf5Id dataset, const EvalArray& array, size_t column, int64_t first_row);
  void add(Array& array, const EvalColumn& column);
  void close_chunk(Array& array);
  static int64_t compressed_bytes(const Array& array);

  std::vector<Array> arrays_;
  std::unique_ptr<ChunkCompressor> compressor_;
};

}  // namespace stepop
