#include "eval_out/hdf5/hdf5_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "eval_out/hdf5/hdf5_arrays.h"
#include "eval_out/hdf5/hdf5_driver.h"
#include "eval_out/hdf5/hdf5_types.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/unpack_limit.h"

namespace stepop {
namespace {

constexpr int kLockedTries = 10;
constexpr std::chrono::milliseconds kLockedPause{10};

/// An object's address in its file, which is the same for all links to the object.
using Address = std::array<unsigned char, 16>;

Address address_of(hid_t object) {
  Address address{};
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info{};
  check_hdf5(H5Oget_info3(object, &info, H5O_INFO_BASIC), "cannot look at an object");
  static_assert(sizeof(info.token) <= sizeof(address));
  std::memcpy(address.data(), &info.token, sizeof(info.token));
#else
  H5O_info_t info{};
  check_hdf5(H5Oget_info2(object, &info, H5O_INFO_BASIC), "cannot look at an object");
  std::memcpy(address.data(), &info.addr, sizeof(info.addr));
#endif
  return address;
}

/// The names of a group's links; with `hard_only`, without soft and external links.
std::vector<std::string> link_names(hid_t group, bool hard_only) {
  struct Found {
    std::vector<std::string> names;
    bool hard_only;
  } found{{}, hard_only};
  const auto keep_name = [](hid_t, const char* name, const H5L_info_t* info, void* data) -> herr_t {
    auto& all = *static_cast<Found*>(data);
    if (!all.hard_only || info->type == H5L_TYPE_HARD) all.names.emplace_back(name);
    return 0;
  };
  check_hdf5(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, keep_name, &found),
             "cannot list the arrays");
  return found.names;
}

Error too_deep(const std::string& name) {
  return Error(
      fmt::format("{}... : groups lie more than {} deep in one another; stepop reads no "
                  "such file: copy the arrays out of it, with h5copy or h5py",
                  name.substr(0, 60), kMostGroups));
}

void visit_group(hid_t group, const std::string& name, size_t depth, std::set<Address>& seen,
                 const std::function<void(hid_t object, const std::string& name)>& visit) {
  if (!seen.insert(address_of(group)).second) return;
  if (depth > kMostGroups) throw too_deep(name);
  visit(group, name.empty() ? "/" : name);
  for (const auto& link : link_names(group, /*hard_only=*/true)) {
    const std::string below = name.empty() ? link : name + "/" + link;
    const Hdf5Id object(H5Oopen(group, link.c_str(), H5P_DEFAULT), H5Oclose,
                        "cannot open " + below);
    if (H5Iget_type(object) == H5I_DATASET) {
      visit(object, below);
    } else if (H5Iget_type(object) == H5I_GROUP) {
      visit_group(object, below, depth + 1, seen, visit);
    }
  }
}

using Visit = std::function<bool(hid_t object, const std::string& name)>;

void visit_object(hid_t parent, const std::string& link, const std::string& name, size_t depth,
                  std::set<Address>& seen, const Visit& visit) {
  if (depth > kMostGroups) throw too_deep(name);
  const Hdf5Id object = open_linked(parent, link, name);
  if (H5Iget_type(object) == H5I_GROUP && !seen.insert(address_of(object)).second) {
    throw Error(
        fmt::format("{} is a group that is there under another name already; in a file of "
                    "outputs each has one",
                    name));
  }
  if (!visit(object, name) || H5Iget_type(object) != H5I_GROUP) return;
  for (const auto& below : link_names(object, /*hard_only=*/false)) {
    visit_object(object, below, name + "/" + below, depth + 1, seen, visit);
  }
}

/// To be called before any other query of the dataset: a virtual dataset opens its files to find
/// its shape.
void check_own_storage(hid_t dataset, const std::string& name) {
  const Hdf5Id creation(H5Dget_create_plist(dataset), H5Pclose, "HDF5 properties");
  const bool is_virtual = H5Pget_layout(creation) == H5D_VIRTUAL;
  if (!is_virtual && H5Pget_external_count(creation) <= 0) return;
  throw Error(
      fmt::format("{} {}: stepop reads no file that another one names; copy the array into "
                  "the file itself, with h5repack or h5py",
                  name,
                  is_virtual ? "is a virtual dataset, put together from other files"
                             : "has its numbers in another file"));
}

/// Throws Error for lengths whose product overflows, even when another length is 0: no tensor can
/// have such lengths.
void check_lengths(const std::vector<hsize_t>& lengths, const std::string& name) {
  int64_t count = 1;
  for (const hsize_t length : lengths) {
    if (!__builtin_mul_overflow(count, std::max<hsize_t>(length, 1), &count)) continue;
    throw Error(fmt::format("{} claims to have the lengths {}, which no array has: it is damaged",
                            name, shape_text({lengths.begin(), lengths.end()})));
  }
}

double product(const std::vector<hsize_t>& lengths) {
  double all = 1;
  for (const hsize_t length : lengths) all *= static_cast<double>(length);
  return all;
}

}  // namespace

int64_t hdf5_file_size(hid_t file) {
  haddr_t size = 0;
  check_hdf5(H5Fget_eoa(file, &size), "cannot read the file's size");
  return static_cast<int64_t>(size);
}

int hdf5_descriptor(hid_t file) {
  void* handle = nullptr;
  // The descriptor of the library's default driver, which keeps the file open as long as an object
  // in it is open.
  if (H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) < 0 || handle == nullptr) return -1;
  return *static_cast<int*>(handle);
}

int64_t size_to_keep(hid_t file, const std::string& path) {
  struct stat status {};
  if (path.ends_with(".part") || ::fstat(hdf5_descriptor(file), &status) != 0) return 0;
  return status.st_size;
}

Hdf5Extent::Hdf5Extent(hid_t dataset, std::string path, int64_t opened_size)
    : path_(std::move(path)) {
  const Hdf5Id file(H5Iget_file_id(dataset), H5Fclose, "HDF5 file");
  unsigned intent = 0;
  check_hdf5(H5Fget_intent(file, &intent), "HDF5 file");
  // When this process writes the file itself, some data may still be in the library's memory.
  if ((intent & H5F_ACC_RDWR) != 0) return;
  file_ = hdf5_descriptor(file);
  const haddr_t offset = H5Dget_offset(dataset);
  end_ = offset == HADDR_UNDEF ? opened_size
                               : static_cast<int64_t>(offset + H5Dget_storage_size(dataset));
}

void Hdf5Extent::check() const {
  struct stat status {};
  if (::fstat(file_, &status) != 0 || status.st_size >= end_) return;
  throw Error(
      fmt::format("{}: became shorter while it was read: it has {} bytes, and had {} or "
                  "more",
                  path_, status.st_size, end_));
}

Hdf5Id open_hdf5(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    throw Error(fmt::format("cannot read {}: it is a pipe or a device, not a regular file", path));
  }
  // The evaluation that writes a .part holds a lock on it, and an evaluation that resumes it needs
  // this lock.
  const bool is_part = path.ends_with(".part");
  const Hdf5Id locked = hdf5_file_access(true);  // closed late, since closing it clears the
                                                 // library's reason
  const Hdf5Id unlocked = hdf5_file_access(false);
  hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, is_part ? unlocked : locked);
  // A program that another thread starts holds this process's locks for a moment.
  for (int i = 0; i < kLockedTries && file < 0 && !is_part && hdf5_was_locked_out(); ++i) {
    std::this_thread::sleep_for(kLockedPause);
    file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, locked);
  }
  // The library refuses to open a file twice with different locking.
  if (file < 0 && is_part) file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, locked);
  if (file >= 0) return {file, H5Fclose, path};
  const bool is_locked = hdf5_was_locked_out();
  std::string reason = hdf5_reason();
  if (reason.starts_with("truncated file")) reason = "the file is cut short";
  if (reason == "unable to locate file signature" || reason == "file signature not found") {
    reason = "it is not an HDF5 file";
  }
  if (is_locked) reason = "another process is writing it";
  throw Error(fmt::format("cannot read {}: {}", path, reason));
}

Hdf5Array describe_hdf5(hid_t dataset, const std::string& name) {
  check_own_storage(dataset, name);
  const Hdf5Id type(H5Dget_type(dataset), H5Tclose, "HDF5 type");
  const Hdf5Id space(H5Dget_space(dataset), H5Sclose, "HDF5 dataspace");
  std::vector<hsize_t> lengths(static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space), 0)));
  H5Sget_simple_extent_dims(space, lengths.data(), nullptr);
  check_lengths(lengths, name);
  return {.name = name,
          .shape = {lengths.begin(), lengths.end()},
          .is_text = H5Tget_class(type) == H5T_STRING,
          .dtype = tensor_type(type)};
}

bool Hdf5Array::has_rows() const { return is_text ? shape.size() == 1 : dtype && !shape.empty(); }

std::string Hdf5Array::kind_text() const {
  return fmt::format("{} {}",
                     is_text ? "text"
                     : dtype ? type_name(*dtype)
                             : "of a type that no tensor has",
                     shape_text(shape));
}

std::vector<Hdf5Array> list_hdf5(hid_t file) {
  std::vector<Hdf5Array> arrays;
  visit_hdf5(file, [&](hid_t object, const std::string& name) {
    if (H5Iget_type(object) == H5I_DATASET) arrays.push_back(describe_hdf5(object, name));
  });
  return arrays;
}

void visit_hdf5(hid_t file,
                const std::function<void(hid_t object, const std::string& name)>& visit) {
  std::set<Address> seen;
  const Hdf5Id root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose, "cannot list the arrays");
  visit_group(root, "", 0, seen, visit);
}

bool has_link(hid_t group, const std::string& name) {
  return H5Lexists(group, name.c_str(), H5P_DEFAULT) > 0;
}

Hdf5Id open_linked(hid_t group, const std::string& name, const std::string& full_name) {
  const std::string context = "cannot open " + full_name;
  H5L_info_t link{};
  check_hdf5(H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT), context);
  if (link.type != H5L_TYPE_HARD) {
    throw Error(
        fmt::format("{} is a link to {}, which stepop does not follow; copy what it leads "
                    "to into its place, with h5copy or h5py",
                    full_name, link.type == H5L_TYPE_SOFT ? "another name" : "another file"));
  }
  return {H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose, context};
}

void visit_objects(hid_t group, const std::string& name, const Visit& visit) {
  std::set<Address> seen;
  visit_object(group, name, name, 1, seen, visit);
}

void Hdf5Sizes::add(hid_t dataset, const std::string& name) {
  const Hdf5Id type(H5Dget_type(dataset), H5Tclose, "HDF5 type");
  const Hdf5Id space(H5Dget_space(dataset), H5Sclose, "HDF5 dataspace");
  std::vector<hsize_t> lengths(static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space), 0)));
  H5Sget_simple_extent_dims(space, lengths.data(), nullptr);
  double elements = product(lengths);
  // A chunk is always unpacked as a whole, even if the array has only a few of its rows.
  if (is_chunked(dataset)) elements = std::max(elements, product(chunk_lengths(dataset)));
  const double claimed = elements * static_cast<double>(H5Tget_size(type));
  const auto stored = static_cast<double>(H5Dget_storage_size(dataset));
  claimed_ += claimed;
  stored_ = std::min(stored_ + stored, file_bytes_);
  if (!is_too_much_unpacked(claimed_, stored_)) return;
  throw Error(fmt::format(
      "{} claims to hold {}, all arrays so far {}, of which the file stores {}: "
      "{}",
      name, size_text(claimed), size_text(claimed_), size_text(stored_), unpack_remedy(claimed_)));
}

}  // namespace stepop
