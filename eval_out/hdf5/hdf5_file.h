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

// Files may come from anywhere: what they claim is checked before anything is read or allocated,
// and nothing outside of them is opened. All functions need a Hdf5Lock.

/// Opens any HDF5 file for reading; a .part while another process writes it, too. Throws Error for
/// one that is missing, no file, no HDF5, cut short, or being written.
Hdf5Id open_hdf5(const std::string& path);

/// The length of the file as the library counts it, without what lies behind its end.
int64_t hdf5_file_size(hid_t file);

/// The descriptor that the library has the file open by; -1 where it is not read by one.
int hdf5_descriptor(hid_t file);

/// Calls `call`, which reads the file `path`: an Error that does not name the file begins with its
/// path then.
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

/// The size of an open file below which nothing of it may be missing: its length; 0 for a .part,
/// which becomes shorter at its end, behind all of its rows.
int64_t size_to_keep(hid_t file, const std::string& path);

/// How long a file must be for one of its arrays. The library reads zeros where one ends that
/// became shorter since it was opened.
class Hdf5Extent {
 public:
  /// `path` names the file in the message. Where the places of an array's numbers are not known,
  /// as of one in chunks, the file keeps `opened_size`: see size_to_keep.
  Hdf5Extent(hid_t dataset, std::string path, int64_t opened_size);

  /// After a reading: throws Error when the file is too short for what was read.
  void check() const;

 private:
  std::string path_;
  int file_ = -1;
  int64_t end_ = 0;
};

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

/// Calls `visit` with each group and array of an open file, `/` first, those of a group sorted by
/// name; links to elsewhere are not followed, and a group that has several links is visited once.
/// Throws Error for groups that lie more than kMostGroups deep in one another.
void visit_hdf5(hid_t file,
                const std::function<void(hid_t object, const std::string& name)>& visit);

/// All arrays of an open file, in the order of visit_hdf5.
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
