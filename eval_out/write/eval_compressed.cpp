#include "eval_out/write/eval_compressed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>
#include <utility>

#include "eval_out/hdf5/hdf5_arrays.h"
#include "eval_out/hdf5/hdf5_types.h"
#include "runtime/core/base/error.h"

namespace stepop {
namespace {

constexpr int64_t kMinRowBytes = 64;
constexpr int64_t kMaxRowBytes = int64_t{1} << 30;  // HDF5 limits chunks to 4 GiB
constexpr int64_t kMinChunkBytes = int64_t{256} << 10;
/// The default chunk cache of HDF5 and h5py: a larger chunk is read again for every row.
constexpr int64_t kMaxChunkBytes = int64_t{1} << 20;
constexpr int kMostThreads = 4;

int64_t row_bytes_of(const EvalArray& array) {
  auto bytes = static_cast<int64_t>(c10::elementSize(array.dtype));
  for (const int64_t length : array.shape) bytes *= length;
  return bytes;
}

bool is_worth_it(const EvalArray& array) {
  const int64_t bytes = row_bytes_of(array);
  return array.kind == EvalKind::kTensor && bytes >= kMinRowBytes && bytes <= kMaxRowBytes;
}

int64_t largest_divisor(int64_t number, int64_t most) {
  int64_t divisor = std::clamp<int64_t>(most, 1, number);
  while (number % divisor != 0) --divisor;
  return divisor;
}

Hdf5Id chunk_properties(const std::vector<hsize_t>& chunk) {
  // The zeros are written, because a missing chunk cannot be read.
  Hdf5Id creation = creation_properties(H5D_FILL_TIME_ALLOC);
  check_hdf5(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()),
             "HDF5 properties");
  check_hdf5(H5Pset_shuffle(creation), "HDF5 properties");
  check_hdf5(H5Pset_deflate(creation, kDeflateLevel), "HDF5 properties");
  return creation;
}

int number_of_threads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads);
}

}  // namespace

std::vector<int64_t> rows_of_chunks(const std::vector<EvalArray>& arrays, int64_t batch_size,
                                    int64_t rows) {
  int64_t largest = 0;
  for (const auto& array : arrays) {
    if (is_worth_it(array)) largest = std::max(largest, row_bytes_of(array));
  }
  std::vector<int64_t> chunks(arrays.size(), 0);
  if (largest == 0) return chunks;
  const int64_t batches = (kMinChunkBytes - 1) / (batch_size * largest) + 1;
  const int64_t at_once = std::min(batches, rows / batch_size) * batch_size;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!is_worth_it(arrays[i])) continue;
    chunks[i] = largest_divisor(at_once, kMaxChunkBytes / row_bytes_of(arrays[i]));
  }
  return chunks;
}

void CompressedArrays::create(hid_t file, const EvalArray& array, size_t column, int64_t rows,
                              int64_t chunk_rows) {
  const Hdf5Id creation = chunk_properties(lengths_of(chunk_rows, array.shape));
  keep(create_dataset(file, array.key, hdf5_type(array.dtype),
                      hdf5_space(lengths_of(rows, array.shape)), creation),
       array, column, 0);
}

void CompressedArrays::open(Hdf5Id dataset, const EvalArray& array, size_t column,
                            int64_t first_row) {
  keep(std::move(dataset), array, column, first_row);
  const Array& opened = arrays_.back();
  if (first_row % opened.chunk_rows != 0 && first_row < opened.rows) {
    throw Error(fmt::format("{}: no chunk ends at row {}", array.key, first_row));
  }
}

void CompressedArrays::keep(Hdf5Id dataset, const EvalArray& array, size_t column,
                            int64_t first_row) {
  const std::vector<hsize_t> chunk = chunk_lengths(dataset);
  const Hdf5Id space(H5Dget_space(dataset), H5Sclose, "HDF5 dataspace");
  std::vector<hsize_t> lengths(chunk.size());
  check_hdf5(H5Sget_simple_extent_dims(space, lengths.data(), nullptr), "HDF5 dataspace");
  if (!compressor_) compressor_ = std::make_unique<ChunkCompressor>(number_of_threads());
  arrays_.push_back({.key = array.key,
                     .column = column,
                     .dataset = std::move(dataset),
                     .rows = static_cast<int64_t>(lengths[0]),
                     .chunk_rows = static_cast<int64_t>(chunk[0]),
                     .row_bytes = static_cast<size_t>(row_bytes_of(array)),
                     .element_bytes = c10::elementSize(array.dtype),
                     .dimensions = chunk.size(),
                     .next_row = first_row});
}

void CompressedArrays::add(const std::vector<EvalColumn>& columns) {
  for (auto& array : arrays_) add(array, columns[array.column]);
  for (auto& array : arrays_) {
    const auto is_ready = [](const auto& chunk) {
      return chunk.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    };
    while (!array.compressing.empty() && is_ready(array.compressing.front())) {
      array.compressed.push_back(array.compressing.front().get());
      array.compressing.pop_front();
    }
  }
}

void CompressedArrays::add(Array& array, const EvalColumn& column) {
  const auto* from = static_cast<const unsigned char*>(column.values.const_data_ptr());
  for (int64_t left = column.values.size(0); left > 0;) {
    array.open.resize(static_cast<size_t>(array.chunk_rows) * array.row_bytes);
    const int64_t count = std::min(left, array.chunk_rows - array.open_rows);
    const size_t bytes = static_cast<size_t>(count) * array.row_bytes;
    std::memcpy(array.open.data() + static_cast<size_t>(array.open_rows) * array.row_bytes, from,
                bytes);
    from += bytes;
    left -= count;
    array.open_rows += count;
    if (array.open_rows == array.chunk_rows) close_chunk(array);
  }
}

void CompressedArrays::close_chunk(Array& array) {
  array.compressing.push_back(
      compressor_->compress(std::exchange(array.open, {}), array.element_bytes));
  array.open_rows = 0;
}

void CompressedArrays::settle(bool is_last) {
  for (auto& array : arrays_) {
    if (is_last && array.open_rows > 0) close_chunk(array);
  }
  for (auto& array : arrays_) {
    for (; !array.compressing.empty(); array.compressing.pop_front()) {
      array.compressed.push_back(array.compressing.front().get());
    }
  }
}

int64_t CompressedArrays::growth() const {
  int64_t bytes = 0;
  for (const auto& array : arrays_) bytes += compressed_bytes(array);
  return bytes;
}

int64_t CompressedArrays::growth_to_come() const {
  int64_t bytes = 0;
  for (const auto& array : arrays_) {
    if (array.compressed.empty()) continue;
    const auto chunks = static_cast<int64_t>(array.compressed.size());
    const int64_t left = (array.rows - array.next_row - 1) / array.chunk_rows + 1;
    bytes += compressed_bytes(array) / chunks * left + compressed_bytes(array) % chunks;
  }
  return bytes;
}

int64_t CompressedArrays::compressed_bytes(const Array& array) {
  size_t bytes = 0;
  for (const auto& chunk : array.compressed) bytes += chunk.bytes.size();
  return static_cast<int64_t>(bytes);
}

void CompressedArrays::write() {
  for (auto& array : arrays_) {
    for (; !array.compressed.empty(); array.compressed.pop_front()) {
      const CompressedChunk& chunk = array.compressed.front();
      std::vector<hsize_t> begin(array.dimensions, 0);
      begin[0] = static_cast<hsize_t>(array.next_row);
      const int64_t end = std::min(array.next_row + array.chunk_rows, array.rows);
      check_hdf5(
          H5Dwrite_chunk(array.dataset, H5P_DEFAULT, chunk.skipped_filters, begin.data(),
                         chunk.bytes.size(), chunk.bytes.data()),
          fmt::format("{}, rows {} to {}: cannot write", array.key, array.next_row, end - 1));
      array.next_row = end;
    }
  }
}

int64_t CompressedArrays::written_rows(int64_t step) const {
  int64_t rows = std::numeric_limits<int64_t>::max();
  bool is_whole = true;
  for (const auto& array : arrays_) {
    rows = std::min(rows, array.next_row);
    is_whole = is_whole && array.next_row == array.rows;
  }
  return is_whole ? rows : rows / step * step;
}

int64_t CompressedArrays::rows_at_once(int64_t batch_size) const {
  int64_t rows = batch_size;
  for (const auto& array : arrays_) rows = std::lcm(rows, array.chunk_rows);
  return rows;
}

}  // namespace stepop
