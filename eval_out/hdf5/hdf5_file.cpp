#include "eval_out/hdf5/hdf5_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <set>

#include "eval_out/hdf5/hdf5_arrays.h"
#include "eval_out/hdf5/hdf5_types.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/base/error.h"
#include "runtime/base/number_text.h"

namespace stepop {
namespace {

constexpr double kUnpackLimit = 2e9;
/// Masks and flat pictures become a hundred times smaller, zeros a thousand times.
constexpr double kMostUnpacked = 100;
constexpr const char* kUnpackLimitName = "STEPOP_UNPACK_LIMIT";

/// Where an object is in its file: the same for all links to it.
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

/// The names of a group's links; with `hard_only` without those that lead to other links or files.
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

void list_group(hid_t group, const std::string& prefix, size_t depth, std::set<Address>& seen,
                std::vector<Hdf5Array>& arrays) {
  if (!seen.insert(address_of(group)).second) return;
  if (depth > kMostGroups) throw too_deep(prefix);
  for (const auto& name : link_names(group, /*hard_only=*/true)) {
    const Hdf5Id object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose, "cannot open " + name);
    if (H5Iget_type(object) == H5I_DATASET) {
      arrays.push_back(describe_hdf5(object, prefix + name));
    } else if (H5Iget_type(object) == H5I_GROUP) {
      list_group(object, prefix + name + "/", depth + 1, seen, arrays);
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

/// Before anything else of it is asked for: a virtual dataset opens its files to find its shape.
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

double product(const std::vector<hsize_t>& lengths) {
  double all = 1;
  for (const hsize_t length : lengths) all *= static_cast<double>(length);
  return all;
}

/// A number of bytes of the environment, else 2 GB.
double unpack_limit() {
  const char* given = std::getenv(kUnpackLimitName);
  if (given == nullptr || *given == 0) return kUnpackLimit;
  char* end = nullptr;
  const double bytes = std::strtod(given, &end);
  if (*end == 0 && bytes >= 0) return bytes;
  throw Error(fmt::format("{}: expected a number of bytes such as 20e9, found \"{}\"",
                          kUnpackLimitName, given));
}

}  // namespace

int64_t hdf5_file_size(hid_t file) {
  hsize_t size = 0;
  check_hdf5(H5Fget_filesize(file, &size), "cannot read the file's size");
  return static_cast<int64_t>(size);
}

Hdf5Id open_hdf5(const std::string& path) {
  // The evaluation that writes a .part holds a lock on it; one that resumes it wants one.
  const bool is_part = path.ends_with(".part");
  const Hdf5Id locked = hdf5_file_access(true);  // closing it forgets the library's reason
  const Hdf5Id unlocked = hdf5_file_access(false);
  hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, is_part ? unlocked : locked);
  // The library opens no file twice with different locking.
  if (file < 0 && is_part) file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, locked);
  if (file >= 0) return {file, H5Fclose, path};
  const bool is_locked = hdf5_was_locked_out();
  std::string reason = hdf5_reason();
  if (reason.starts_with("truncated file")) reason = "the file is cut short";
  if (reason == "unable to locate file signature" || reason == "file signature not found") {
    reason = "it is no HDF5 file";
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
  std::set<Address> seen;
  const Hdf5Id root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose, "cannot list the arrays");
  list_group(root, "", 0, seen, arrays);
  return arrays;
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
  // A chunk is unpacked whole, however few of its rows there are.
  if (is_chunked(dataset)) elements = std::max(elements, product(chunk_lengths(dataset)));
  const double claimed = elements * static_cast<double>(H5Tget_size(type));
  const auto stored = static_cast<double>(H5Dget_storage_size(dataset));
  claimed_ += claimed;
  stored_ = std::min(stored_ + stored, file_bytes_);
  if (claimed_ <= unpack_limit() || claimed_ <= kMostUnpacked * stored_) return;
  throw Error(fmt::format(
      "{} claims to hold {}, all arrays so far {}, of which the file stores {}: it is damaged, or "
      "made to fill the memory. If you know where it is from, {}={:.0e} in the environment takes "
      "it",
      name, size_text(claimed), size_text(claimed_), size_text(stored_), kUnpackLimitName,
      claimed_ * 2));
}

}  // namespace stepop
