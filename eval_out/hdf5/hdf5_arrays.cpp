#include "eval_out/hdf5/hdf5_arrays.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>

#include "eval_out/hdf5/hdf5_types.h"

namespace stepop {

Hdf5Id link_properties() {
  Hdf5Id properties(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "HDF5 properties");
  check_hdf5(H5Pset_create_intermediate_group(properties, 1), "HDF5 properties");
  check_hdf5(H5Pset_char_encoding(properties, H5T_CSET_UTF8), "HDF5 properties");
  return properties;
}

Hdf5Id creation_properties(H5D_fill_time_t fill_time) {
  Hdf5Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "HDF5 properties");
  check_hdf5(H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY), "HDF5 properties");
  check_hdf5(H5Pset_fill_time(properties, fill_time), "HDF5 properties");
  // Without modification times, a file has the same bytes whenever it is written.
  check_hdf5(H5Pset_obj_track_times(properties, false), "HDF5 properties");
  return properties;
}

Hdf5Id create_dataset(hid_t parent, const std::string& name, hid_t type, hid_t space,
                      hid_t creation, hid_t access) {
  return {H5Dcreate2(parent, name.c_str(), type, space, link_properties(), creation, access),
          H5Dclose, fmt::format("cannot create {}", name)};
}

Hdf5Id open_dataset(hid_t parent, const std::string& name, hid_t access) {
  return {H5Dopen2(parent, name.c_str(), access), H5Dclose, fmt::format("cannot open {}", name)};
}

std::vector<hsize_t> lengths_of(int64_t first, const std::vector<int64_t>& rest) {
  std::vector<hsize_t> lengths{static_cast<hsize_t>(first)};
  lengths.insert(lengths.end(), rest.begin(), rest.end());
  return lengths;
}

void write_rows(hid_t dataset, hid_t type, int64_t first, const std::vector<hsize_t>& lengths,
                const void* data) {
  if (std::find(lengths.begin(), lengths.end(), 0U) != lengths.end()) return;
  const Hdf5Id in_file = hdf5_rows(dataset, static_cast<hsize_t>(first), lengths);
  const Hdf5Id in_memory = hdf5_space(lengths);
  check_hdf5(H5Dwrite(dataset, type, in_memory, in_file, H5P_DEFAULT, data), "cannot write");
}

bool is_chunked(hid_t dataset) {
  const Hdf5Id creation(H5Dget_create_plist(dataset), H5Pclose, "HDF5 properties");
  return H5Pget_layout(creation) == H5D_CHUNKED;
}

std::vector<hsize_t> chunk_lengths(hid_t dataset) {
  const Hdf5Id creation(H5Dget_create_plist(dataset), H5Pclose, "HDF5 properties");
  std::vector<hsize_t> chunk(H5S_MAX_RANK);
  chunk.resize(static_cast<size_t>(
      check_hdf5(H5Pget_chunk(creation, H5S_MAX_RANK, chunk.data()), "HDF5 properties")));
  return chunk;
}

Hdf5Id create_numbers(hid_t parent, const std::string& name, int64_t count) {
  return create_dataset(parent, name, hdf5_type(at::kLong),
                        hdf5_space({static_cast<hsize_t>(count)}),
                        creation_properties(H5D_FILL_TIME_NEVER));
}

void write_numbers(hid_t dataset, int64_t first, const std::vector<int64_t>& numbers) {
  write_rows(dataset, hdf5_type(at::kLong), first, {numbers.size()}, numbers.data());
}

}  // namespace stepop
