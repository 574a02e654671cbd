#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval_out/hdf5/hdf5_file.h"
#include "eval_out/hdf5/hdf5_references.h"

namespace stepop {

/// One array of an HDF5 file, [N, ...] of numbers or [N] of text, read row by row in any order. Its
/// const functions may be called by several threads at once.
class Hdf5Rows {
 public:
  /// Opens the array, which `has_rows`; only its first `rows` rows are used, all by default. The
  /// file may be closed afterwards; `path` names it in errors. Needs a Hdf5Lock.
  Hdf5Rows(hid_t file, const std::string& path, Hdf5Array array,
           std::optional<int64_t> rows = std::nullopt);

  const Hdf5Array& array() const { return array_; }
  int64_t rows() const { return rows_; }

  /// The memory that all rows take; for texts, an estimate from 200 of them.
  double bytes() const;

  /// Reads all rows into memory; from then on nothing is read from the file.
  void keep();

  /// All rows, [N, ...], if they are in memory; else undefined.
  const at::Tensor& kept() const { return kept_; }

  /// The rows in the given order, [rows, ...]; a row may occur twice. Rows that are near each other
  /// in the file are read together. Throws Error for a row that does not exist, when the file
  /// cannot be read, and when the file became shorter after it was opened.
  at::Tensor gather(std::span<const int64_t> rows) const;
  std::vector<std::string> gather_texts(std::span<const int64_t> rows) const;

  /// The rows `first` to `first + count`; throws Error for rows that do not exist.
  at::Tensor read(int64_t first, int64_t count) const;

 private:
  void open(hid_t file);
  void check_rows(std::span<const int64_t> rows) const;
  void read_into(int64_t first, int64_t count, void* target) const;
  std::vector<int64_t> text_lengths(int64_t first, int64_t count) const;
  std::vector<std::string> read_texts(int64_t first, int64_t count) const;
  at::Tensor empty(int64_t count) const;

  std::string path_;
  Hdf5Array array_;
  int64_t rows_ = 0;
  size_t row_bytes_ = 0;  ///< The size of a row in memory, or of a reference to a text.
  Hdf5Id dataset_;
  Hdf5Id type_;  ///< The type in memory.
  std::optional<Hdf5Extent> extent_;
  std::unique_ptr<Hdf5References> references_;  ///< For text of variable length.
  double file_bytes_ = 0;
  bool is_kept_ = false;
  at::Tensor kept_;
  std::vector<std::string> kept_texts_;
};

}  // namespace stepop
