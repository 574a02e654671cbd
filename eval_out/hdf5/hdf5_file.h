#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "eval_out/hdf5/hdf5.h"
#include "runtime/core/base/error.h"

namespace stepop {

// Files may come from anywhere, so their contents are checked before data is read or memory
// allocated, and no other file is opened through them. All functions need a Hdf5Lock.

/// Opens any HDF5 file for reading, including a .part that another process is writing. Throws Error
/// for a path that is missing, not a file, not HDF5, truncated, or being written.
Hdf5Id open_hdf5(const std::string& path);

/// The length of the file as the library counts it, without what lies behind its end.
int64_t hdf5_file_size(hid_t file);

/// The library's descriptor of the file; -1 when the library does not use one.
int hdf5_descriptor(hid_t file);

/// Calls `call`, which reads the file `path`. An Error that does not name the file gets its path as
/// a prefix.
template <class Call>
auto in_hdf5_file(const std::string& path, const Call& call) {
  try {
    return call();
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.find(path) != std::string::npos) throw;
    throw Error(path + ": " + message);
  }
}

/// The smallest size at which an open file is intact: its length; 0 for a .part, whose unused end
/// is cut off when it is finished.
int64_t size_to_keep(hid_t file, const std::string& path);

/// The length that a file must have for one of its arrays. If a file is truncated after it was
/// opened, the library reads zeros past its end.
class Hdf5Extent {
 public:
  /// `path` names the file in the message. When the place of an array's numbers is not known, as
  /// for an array in chunks, the file must keep `opened_size`: see size_to_keep.
  Hdf5Extent(hid_t dataset, std::string path, int64_t opened_size);

  /// To be called after reading: throws Error when the file is too short for the data that was
  /// read.
  void check() const;

 private:
  std::string path_;
  int file_ = -1;
  int64_t end_ = 0;
};

/// An array of an HDF5 file.
struct Hdf5Array {
  std::string name;            ///< The name with its groups: `group/images`.
  std::vector<int64_t> shape;  ///< The full shape; empty for a single value.
  bool is_text = false;
  std::optional<at::ScalarType> dtype;  ///< Empty for text, and for types without a tensor type.

  /// Whether its first dimension can count examples: tensors, and texts [N].
  bool has_rows() const;
  /// `uint8 [100, 28, 28]`
  std::string kind_text() const;
  /// `group/images uint8 [100, 28, 28]`
  std::string describe() const { return name + " " + kind_text(); }
};

/// Describes an open array under the name `name`. Throws Error for an array whose numbers are in
/// other files: external storage and virtual datasets.
Hdf5Array describe_hdf5(hid_t dataset, const std::string& name);

/// Calls `visit` with each group and array of an open file, `/` first, the members of a group
/// sorted by name. Links to other places are not followed, and a group with several links is
/// visited once. Throws Error for groups nested more than kMostGroups deep.
void visit_hdf5(hid_t file,
                const std::function<void(hid_t object, const std::string& name)>& visit);

/// All arrays of an open file, in the order of visit_hdf5.
std::vector<Hdf5Array> list_hdf5(hid_t file);

/// Groups are nested at most this deep.
inline constexpr size_t kMostGroups = 64;

/// Whether a group has a link `name`, whether or not its target exists.
bool has_link(hid_t group, const std::string& name);

/// Opens the target of a group's link `name`. Throws Error when the target is another file or
/// another link; `full_name` is the name in messages.
Hdf5Id open_linked(hid_t group, const std::string& name, const std::string& full_name);

/// Calls `visit` for the object `name` in the group and for all objects below it, in the order of
/// their names; `visit` returns whether the members of a group are visited too. Throws Error for
/// links as open_linked does, for a group with more than one link (it could contain itself), and
/// for groups nested more than kMostGroups deep.
void visit_objects(hid_t group, const std::string& name,
                   const std::function<bool(hid_t object, const std::string& name)>& visit);

/// Adds up the sizes that the arrays of a file claim to have and the sizes that the file stores,
/// and refuses arrays of which almost nothing is stored: unpacking them would fill the memory and
/// take hours.
class Hdf5Sizes {
 public:
  explicit Hdf5Sizes(hid_t file) : file_bytes_(static_cast<double>(hdf5_file_size(file))) {}

  /// Throws Error when all arrays together claim more than 2 GB, or the environment's
  /// STEPOP_UNPACK_LIMIT in bytes, and also more than a hundred times the size that the file
  /// stores.
  void add(hid_t dataset, const std::string& name);

 private:
  double file_bytes_;
  double claimed_ = 0;
  double stored_ = 0;
};

}  // namespace stepop
