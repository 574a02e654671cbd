#include "eval_out/read/eval_layout.h"

#include <fmt/format.h>

#include <string>

#include "eval_out/hdf5/eval_dataset.h"
#include "eval_out/hdf5/hdf5_rows.h"
#include "runtime/base/error.h"

namespace stepop {
namespace {

std::vector<std::string> members(hid_t group) {
  std::vector<std::string> names;
  const auto keep_name = [](hid_t, const char* name, const H5L_info_t*, void* data) -> herr_t {
    static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  };
  check_hdf5(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, keep_name, &names),
             "cannot list the arrays");
  return names;
}

void check_length(const std::string& name, int64_t found, int64_t rows) {
  if (found >= rows) return;
  throw Error(fmt::format("{} has {} rows, the file says that {} were written", name, found, rows));
}

/// Throws Error when the array is none that a writer of this format makes. `rows` is what it has at
/// least.
EvalArray describe_rows(hid_t dataset, const std::string& name, int64_t rows) {
  const Hdf5Array found = describe_hdf5(dataset, name);
  if (found.shape.empty()) throw Error(name + " is a single value");
  check_length(name, found.shape[0], rows);
  EvalArray array{name, EvalKind::kTensor, at::kByte, {found.shape.begin() + 1, found.shape.end()}};
  if (found.is_text) {
    const Hdf5Id type(H5Dget_type(dataset), H5Tclose, "HDF5 type");
    if (H5Tis_variable_str(type) <= 0) throw Error(name + " is text of fixed length");
    if (found.shape.size() != 1) {
      throw Error(
          fmt::format("{} is text of shape {}; text is [N]", name, shape_text(found.shape)));
    }
    array.kind = EvalKind::kText;
    return array;
  }
  if (!found.dtype) throw Error(name + " is of a type that no tensor has");
  array.dtype = *found.dtype;
  return array;
}

/// Throws Error when `name` holds no whole numbers of the shape that `shape` tells; returns how
/// many there are.
int64_t check_numbers(hid_t file, const std::string& name, const char* shape) {
  const Hdf5Array found = describe_hdf5(open_dataset(file, name), name);
  const bool is_whole = found.dtype && c10::isIntegralType(*found.dtype, /*includeBool=*/false);
  if (is_whole && found.shape.size() == 1) return found.shape[0];
  throw Error(fmt::format("{} must be whole numbers {}, found {}", name, shape, found.kind_text()));
}

EvalArray describe_ragged(hid_t file, const std::string& key, int64_t rows) {
  const std::string values = key + "/values";
  EvalArray array = describe_rows(open_dataset(file, values), values, 0);
  if (array.kind == EvalKind::kText) throw Error(values + " is text; ragged arrays are of numbers");
  const std::string offsets = key + "/offsets";
  check_length(offsets, check_numbers(file, offsets, "[N + 1]") - 1, rows);
  array.key = key;
  array.kind = EvalKind::kRagged;
  return array;
}

void list_arrays(hid_t file, const std::string& key, int64_t rows, std::vector<EvalArray>& arrays) {
  const Hdf5Id object(H5Oopen(file, key.c_str(), H5P_DEFAULT), H5Oclose, "cannot open " + key);
  if (H5Iget_type(object) == H5I_DATASET) {
    arrays.push_back(describe_rows(object, key, rows));
  } else if (H5Aexists(object, "ragged") > 0) {
    arrays.push_back(describe_ragged(file, key, rows));
  } else if (H5Iget_type(object) == H5I_GROUP) {
    for (const auto& name : members(object)) list_arrays(file, key + "/" + name, rows, arrays);
  }
}

}  // namespace

int64_t check_index_array(hid_t file, int64_t rows) {
  const int64_t length = check_numbers(file, "index", "[N]");
  check_length("index", length, rows);
  return length;
}

std::vector<EvalArray> list_eval_arrays(hid_t file, int64_t rows) {
  std::vector<EvalArray> arrays;
  for (const char* group : {"labels", "outputs"}) {
    if (H5Lexists(file, group, H5P_DEFAULT) > 0) list_arrays(file, group, rows, arrays);
  }
  return arrays;
}

}  // namespace stepop
