#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "eval_out/hdf5/hdf5.h"

namespace stepop {

/// Opens any HDF5 file for reading; a .part while another process writes it, too. Throws Error for
/// one that is missing, no HDF5, cut short, or being written. Needs a Hdf5Lock.
Hdf5Id open_hdf5(const std::string& path);

/// An array of an HDF5 file.
struct Hdf5Array {
  std::string name;            ///< With the groups that it is in: `group/images`.
  std::vector<int64_t> shape;  ///< The whole one; empty for a single value.
  bool is_text = false;
  std::optional<at::ScalarType> dtype;  ///< Empty for text, and for a type that no tensor has.

  /// Whether its first dimension can count examples: tensors, and texts [N].
  bool has_rows() const;
  /// `uint8 [100, 28, 28]`
  std::string kind_text() const;
  /// `group/images uint8 [100, 28, 28]`
  std::string describe() const { return name + " " + kind_text(); }
};

/// What an open array is, under the name `name`. Needs a Hdf5Lock.
Hdf5Array describe_hdf5(hid_t dataset, const std::string& name);

/// All arrays of an open file, sorted by name within each group; links to elsewhere are not
/// followed. Needs a Hdf5Lock.
std::vector<Hdf5Array> list_hdf5(hid_t file);

}  // namespace stepop
