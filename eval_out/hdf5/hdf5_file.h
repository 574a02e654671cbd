#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "eval_out/hdf5/hdf5.h"

namespace stepop {

// Files may come from anywhere: what they claim is checked before anything is read or allocated,
// and nothing outside of them is opened. All functions need a Hdf5Lock.

/// Opens any HDF5 file for reading; a .part while another process writes it, too. Throws Error for
/// one that is missing, no HDF5, cut short, or being written.
Hdf5Id open_hdf5(const std::string& path);

/// The length of the file as the library counts it.
int64_t hdf5_file_size(hid_t file);

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

/// What an open array is, under the name `name`. Throws Error for one whose numbers lie in other
/// files: external storage, and virtual datasets.
Hdf5Array describe_hdf5(hid_t dataset, const std::string& name);

/// All arrays of an open file, sorted by name within each group; links to elsewhere are not
/// followed, and a group that has several links is listed once. Throws Error for groups that lie
/// more than kMostGroups deep in one another.
std::vector<Hdf5Array> list_hdf5(hid_t file);

/// Groups lie at most this deep in one another.
inline constexpr size_t kMostGroups = 64;

/// Whether a group has a link of that name, wherever it leads.
bool has_link(hid_t group, const std::string& name);

/// Opens what the link `name` of a group leads to. Throws Error when it leads to another file or
/// to another link; `full_name` is its name in messages.
Hdf5Id open_linked(hid_t group, const std::string& name, const std::string& full_name);

/// Calls `visit` for an object below `name` in the group and all that are below it, in the order of
/// their names; it returns whether the objects of a group are to be visited. Throws Error for links
/// as open_linked does, for a group that has more than one link (it could hold itself), and for
/// groups more than kMostGroups deep.
void visit_objects(hid_t group, const std::string& name,
                   const std::function<bool(hid_t object, const std::string& name)>& visit);

/// Adds up what the arrays of a file claim to hold and what the file stores of them, and refuses
/// arrays of which it stores next to nothing: unpacked they would fill the memory, and take hours.
class Hdf5Sizes {
 public:
  explicit Hdf5Sizes(hid_t file) : file_bytes_(static_cast<double>(hdf5_file_size(file))) {}

  /// Throws Error when all arrays together claim more than 2 GB, or than the environment's
  /// STEPOP_UNPACK_LIMIT in bytes, and more than a hundred times what the file stores of them.
  void add(hid_t dataset, const std::string& name);

 private:
  double file_bytes_;
  double claimed_ = 0;
  double stored_ = 0;
};

}  // namespace stepop
