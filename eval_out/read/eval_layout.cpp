#include "eval_out/read/eval_layout.h"

#include <fmt/format.h>

#include <string>

#include "eval_out/hdf5/hdf5_types.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/error.h"

namespace stepop {
namespace {

/// Opens the array to which a group's link `name` points; `sizes` checks its size.
Hdf5Id open_array(hid_t group, const std::string& name, const std::string& full_name,
                  Hdf5Sizes* sizes) {
  Hdf5Id dataset = open_linked(group, name, full_name);
  if (H5Iget_type(dataset) != H5I_DATASET) throw Error(full_name + " is no array");
  describe_hdf5(dataset, full_name);  // throws for data in other files
  if (sizes != nullptr) sizes->add(dataset, full_name);
  return dataset;
}

void check_length(const std::string& name, int64_t found, int64_t rows) {
  if (found >= rows) return;
  throw Error(fmt::format("{} has {} rows, the file says that {} were written", name, found, rows));
}

/// Throws Error unless the array has the form that a writer of this format makes, with at least
/// `rows` rows.
EvalArray describe_rows(hid_t dataset, const std::string& name, int64_t rows) {
  const Hdf5Array found = describe_hdf5(dataset, name);
  if (found.shape.empty()) throw Error(name + " is a single value");
  check_length(name, found.shape[0], rows);
  EvalArray array{name, EvalKind::kTensor, at::kByte, {found.shape.begin() + 1, found.shape.end()}};
  if (found.is_text) {
    const Hdf5Id type(H5Dget_type(dataset), H5Tclose, "HDF5 type");
    if (!is_variable_text(type)) throw Error(name + " is text of fixed length");
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

/// Throws Error unless the array holds whole numbers in one dimension; `shape` describes it in the
/// message. Returns how many there are.
int64_t check_numbers(hid_t dataset, const std::string& name, const char* shape) {
  const Hdf5Array found = describe_hdf5(dataset, name);
  const bool is_whole = found.dtype && c10::isIntegralType(*found.dtype, /*includeBool=*/false);
  if (is_whole && found.shape.size() == 1) return found.shape[0];
  throw Error(fmt::format("{} must be whole numbers {}, found {}", name, shape, found.kind_text()));
}

EvalArray describe_ragged(hid_t group, const std::string& key, int64_t rows, Hdf5Sizes* sizes) {
  const std::string values = key + "/values";
  const Hdf5Id dataset = open_array(group, "values", values, sizes);
  EvalArray array = describe_rows(dataset, values, 0);
  if (array.kind == EvalKind::kText) throw Error(values + " is text; ragged arrays are of numbers");
  const std::string offsets = key + "/offsets";
  check_length(offsets,
               check_numbers(open_array(group, "offsets", offsets, sizes), offsets, "[N + 1]") - 1,
               rows);
  array.key = key;
  array.kind = EvalKind::kRagged;
  return array;
}

}  // namespace

int64_t check_index_array(hid_t file, int64_t rows, Hdf5Sizes* sizes) {
  const int64_t length = check_numbers(open_array(file, "index", "index", sizes), "index", "[N]");
  check_length("index", length, rows);
  return length;
}

std::vector<EvalArray> list_eval_arrays(hid_t file, int64_t rows, Hdf5Sizes* sizes) {
  std::vector<EvalArray> arrays;
  const auto look = [&](hid_t object, const std::string& key) {
    if (H5Iget_type(object) == H5I_DATASET) {
      arrays.push_back(describe_rows(object, key, rows));
      if (sizes != nullptr) sizes->add(object, key);
      return false;
    }
    if (H5Aexists(object, "ragged") <= 0) return true;
    arrays.push_back(describe_ragged(object, key, rows, sizes));
    return false;
  };
  for (const char* group : {"labels", "outputs", "weights"}) {
    if (has_link(file, group)) visit_objects(file, group, look);
  }
  return arrays;
}

}  // namespace stepop
