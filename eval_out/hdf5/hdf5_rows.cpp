#include "eval_out/hdf5/hdf5_rows.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "eval_out/hdf5/hdf5_arrays.h"
#include "eval_out/hdf5/hdf5_types.h"
#include "runtime/core/base/error.h"

namespace stepop {
namespace {

/// Up to about this distance, reading the bytes between two rows costs less than a separate read.
constexpr size_t kGapBytes = 8 << 10;
constexpr size_t kPieceBytes = 8 << 20;
constexpr size_t kMostChunkCache = 64 << 20;

/// Rows `first` to `last`, both included, that are read at once.
struct Piece {
  int64_t first;
  int64_t last;
  std::span<const size_t> places;  ///< The places of the piece's rows among the requested rows.
};

/// `order` receives the places of `rows`, sorted by row; the pieces point into `order`.
std::vector<Piece> pieces_of(std::span<const int64_t> rows, size_t row_bytes,
                             std::vector<size_t>& order) {
  order.resize(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rows[a] < rows[b]; });
  const auto gap = static_cast<int64_t>(std::max<size_t>(kGapBytes / row_bytes, 1));
  const auto most = static_cast<int64_t>(std::max<size_t>(kPieceBytes / row_bytes, 1));
  std::vector<Piece> pieces;
  size_t begin = 0;
  for (size_t i = 1; i <= order.size(); ++i) {
    const int64_t first = rows[order[begin]];
    const int64_t last = rows[order[i - 1]];
    if (i < order.size() && rows[order[i]] - last <= gap && rows[order[i]] - first < most) continue;
    pieces.push_back({first, last, std::span(order).subspan(begin, i - begin)});
    begin = i;
  }
  return pieces;
}

bool is_consecutive(std::span<const int64_t> rows) {
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] != rows[i - 1] + 1) return false;
  }
  return true;
}

/// Opens an array with a cache, so that a chunk is unpacked once for all of its rows in a batch.
Hdf5Id open_with_cache(hid_t file, const std::string& name, size_t row_bytes) {
  Hdf5Id dataset = open_dataset(file, name);
  if (!is_chunked(dataset)) return dataset;
  const size_t bytes =
      std::min<size_t>(2 * chunk_lengths(dataset).at(0) * row_bytes, kMostChunkCache);
  constexpr size_t kDefaultCache = 1 << 20;
  constexpr size_t kSlots = 4099;
  if (bytes <= kDefaultCache) return dataset;
  const Hdf5Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, "HDF5 properties");
  check_hdf5(H5Pset_chunk_cache(access, kSlots, bytes, H5D_CHUNK_CACHE_W0_DEFAULT),
             "HDF5 properties");
  dataset.reset();
  return open_dataset(file, name, access);
}

/// A text of fixed length as h5py, or Fortran, pads it.
std::string unpadded(const char* text, size_t length, H5T_str_t padding) {
  std::string_view view(text, padding == H5T_STR_SPACEPAD ? length : ::strnlen(text, length));
  while (padding == H5T_STR_SPACEPAD && view.ends_with(' ')) view.remove_suffix(1);
  return std::string(view);
}

}  // namespace

Hdf5Rows::Hdf5Rows(hid_t file, const std::string& path, Hdf5Array array,
                   std::optional<int64_t> rows)
    : path_(path), array_(std::move(array)), rows_(rows.value_or(array_.shape.at(0))) {
  if (rows_ > array_.shape.at(0)) {
    throw Error(fmt::format("{}: {} has fewer rows than the {} that the file says it has", path_,
                            array_.describe(), rows_));
  }
  row_bytes_ = array_.is_text ? sizeof(char*) : c10::elementSize(*array_.dtype);
  for (size_t i = 1; i < array_.shape.size(); ++i) {
    row_bytes_ *= static_cast<size_t>(array_.shape[i]);
  }
  in_hdf5_file(path_, [&] { open(file); });
}

void Hdf5Rows::open(hid_t file) {
  dataset_ = open_with_cache(file, array_.name, row_bytes_);
  Hdf5Sizes(file).add(dataset_, array_.name);
  extent_.emplace(dataset_, path_, size_to_keep(file, path_));
  if (!array_.is_text) {
    type_ = hdf5_type(*array_.dtype);
    return;
  }
  type_ = Hdf5Id(H5Dget_type(dataset_), H5Tclose, "HDF5 type");
  if (!is_variable_text(type_)) {
    row_bytes_ = H5Tget_size(type_);
    return;
  }
  file_bytes_ = static_cast<double>(hdf5_file_size(file));
  references_ = std::make_unique<Hdf5References>(file);
}

double Hdf5Rows::bytes() const {
  if (!array_.is_text) return static_cast<double>(rows_) * static_cast<double>(row_bytes_);
  constexpr int64_t kSample = 200;
  const int64_t count = std::min(kSample, rows_);
  const Hdf5Lock lock;
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t length =
        references_ ? text_lengths(i * rows_ / count, 1)[0] : static_cast<int64_t>(row_bytes_);
    total += static_cast<double>(sizeof(std::string)) + static_cast<double>(length);
  }
  return total * static_cast<double>(rows_) / static_cast<double>(std::max<int64_t>(count, 1));
}

at::Tensor Hdf5Rows::empty(int64_t count) const {
  std::vector<int64_t> shape = array_.shape;
  shape[0] = count;
  return at::empty(shape, at::TensorOptions().dtype(*array_.dtype));
}

void Hdf5Rows::read_into(int64_t first, int64_t count, void* target) const {
  const Hdf5Lock lock;
  std::vector<hsize_t> lengths(array_.shape.begin(), array_.shape.end());
  lengths[0] = static_cast<hsize_t>(count);
  check_hdf5(
      H5Dread(dataset_, type_, hdf5_space(lengths),
              hdf5_rows(dataset_, static_cast<hsize_t>(first), lengths), H5P_DEFAULT, target),
      fmt::format("{}: cannot read {}", path_, array_.name));
}

/// Needs a Hdf5Lock.
std::vector<int64_t> Hdf5Rows::text_lengths(int64_t first, int64_t count) const {
  return in_hdf5_file(
      path_, [&] { return references_->check_texts(dataset_, array_.name, first, count); });
}

void Hdf5Rows::check_rows(std::span<const int64_t> rows) const {
  for (const int64_t row : rows) {
    if (row >= 0 && row < rows_) continue;
    throw Error(fmt::format("{}: no row {} in {}, of {} rows", path_, row, array_.name, rows_));
  }
}

at::Tensor Hdf5Rows::read(int64_t first, int64_t count) const {
  if (count > 0) check_rows(std::array{first, first + count - 1});
  at::Tensor values = empty(count);
  if (values.numel() == 0) return values;
  if (is_kept_) return values.copy_(kept_.slice(0, first, first + count));
  read_into(first, count, values.mutable_data_ptr());
  extent_->check();
  return values;
}

std::vector<std::string> Hdf5Rows::read_texts(int64_t first, int64_t count) const {
  std::vector<std::string> texts(static_cast<size_t>(count));
  if (count == 0) return texts;
  const Hdf5Lock lock;
  if (references_) {
    double total = 0;
    for (const int64_t length : text_lengths(first, count)) total += static_cast<double>(length);
    if (total > file_bytes_) {
      throw Error(fmt::format("{}: {}: the file is damaged: its texts are longer than the file",
                              path_, array_.name));
    }
  }
  std::vector<char> buffer(texts.size() * row_bytes_, '\0');
  read_into(first, count, buffer.data());
  if (!references_) {
    const H5T_str_t padding = H5Tget_strpad(type_);
    for (size_t i = 0; i < texts.size(); ++i) {
      texts[i] = unpadded(buffer.data() + i * row_bytes_, row_bytes_, padding);
    }
    extent_->check();
    return texts;
  }
  const auto* read = reinterpret_cast<const char* const*>(buffer.data());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (read[i] != nullptr) texts[i] = read[i];
  }
  check_hdf5(H5Dvlen_reclaim(type_, hdf5_space({static_cast<hsize_t>(count)}), H5P_DEFAULT,
                             static_cast<void*>(buffer.data())),
             "HDF5 memory");
  return texts;
}

void Hdf5Rows::keep() {
  if (is_kept_) return;
  if (array_.is_text) {
    kept_texts_ = read_texts(0, rows_);
  } else {
    kept_ = read(0, rows_);
  }
  is_kept_ = true;
  dataset_.reset();
}

at::Tensor Hdf5Rows::gather(std::span<const int64_t> rows) const {
  check_rows(rows);
  at::Tensor values = empty(static_cast<int64_t>(rows.size()));
  if (values.numel() == 0) return values;
  auto* target = static_cast<char*>(values.mutable_data_ptr());
  const auto copy = [&](const void* from, int64_t row, size_t place) {
    std::memcpy(target + place * row_bytes_,
                static_cast<const char*>(from) + static_cast<size_t>(row) * row_bytes_, row_bytes_);
  };
  if (is_kept_) {
    for (size_t i = 0; i < rows.size(); ++i) copy(kept_.const_data_ptr(), rows[i], i);
    return values;
  }
  if (is_consecutive(rows)) {
    read_into(rows[0], static_cast<int64_t>(rows.size()), target);
    extent_->check();
    return values;
  }
  const Hdf5Lock lock;
  std::vector<size_t> order;
  for (const auto& piece : pieces_of(rows, row_bytes_, order)) {
    if (piece.places.size() == 1) {
      read_into(piece.first, 1, target + piece.places[0] * row_bytes_);
      continue;
    }
    const at::Tensor read_rows = read(piece.first, piece.last - piece.first + 1);
    for (const size_t place : piece.places) {
      copy(read_rows.const_data_ptr(), rows[place] - piece.first, place);
    }
  }
  extent_->check();
  return values;
}

std::vector<std::string> Hdf5Rows::gather_texts(std::span<const int64_t> rows) const {
  check_rows(rows);
  std::vector<std::string> texts(rows.size());
  if (is_kept_) {
    for (size_t i = 0; i < rows.size(); ++i) texts[i] = kept_texts_[static_cast<size_t>(rows[i])];
    return texts;
  }
  const Hdf5Lock lock;
  // A text between two requested texts costs as much as a requested text, so only neighbours are
  // read together.
  std::vector<size_t> order;
  for (const auto& piece : pieces_of(rows, kGapBytes, order)) {
    const auto read_rows = read_texts(piece.first, piece.last - piece.first + 1);
    for (const size_t place : piece.places) {
      texts[place] = read_rows[static_cast<size_t>(rows[place] - piece.first)];
    }
  }
  return texts;
}

}  // namespace stepop
