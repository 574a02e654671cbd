#include "eval_out/hdf5/hdf5_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval_out/eval_schema.h"
#include "eval_out/hdf5/hdf5_types.h"
#include "runtime/base/error.h"

namespace stepop {
namespace {

void list_group(hid_t group, const std::string& prefix, int depth, std::vector<Hdf5Array>& arrays) {
  constexpr int kMostDepth = 32;  // groups may hold one another
  std::vector<std::string> names;
  const auto keep_name = [](hid_t, const char* name, const H5L_info_t* info, void* data) -> herr_t {
    if (info->type == H5L_TYPE_HARD) {
      static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    }
    return 0;
  };
  check_hdf5(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, keep_name, &names),
             "cannot list the arrays");
  for (const auto& name : names) {
    const Hdf5Id object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose, "cannot open " + name);
    if (H5Iget_type(object) == H5I_DATASET) {
      arrays.push_back(describe_hdf5(object, prefix + name));
    } else if (H5Iget_type(object) == H5I_GROUP && depth < kMostDepth) {
      list_group(object, prefix + name + "/", depth + 1, arrays);
    }
  }
}

}  // namespace

Hdf5Id open_hdf5(const std::string& path) {
  // The evaluation that writes a .part holds a lock on it; one that goes on with it wants one.
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
  const Hdf5Id root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose, "cannot list the arrays");
  list_group(root, "", 0, arrays);
  return arrays;
}

}  // namespace stepop
