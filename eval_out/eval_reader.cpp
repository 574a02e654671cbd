#include "eval_out/eval_reader.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "eval_out/hdf5.h"
#include "eval_out/hdf5_attributes.h"
#include "eval_out/hdf5_rows.h"
#include "eval_out/hdf5_types.h"

namespace stepop {
namespace {

constexpr int64_t kNewestFormat = 1;
constexpr int64_t kBlockBytes = 8'000'000;

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

std::vector<int64_t> shape_of(hid_t dataset) {
  const Hdf5Id space(H5Dget_space(dataset), H5Sclose, "HDF5 dataspace");
  std::vector<hsize_t> lengths(static_cast<size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, lengths.data(), nullptr);
  return {lengths.begin(), lengths.end()};
}

Hdf5Id open_dataset(hid_t file, const std::string& name) {
  return {H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose, "cannot open " + name};
}

/// Throws Error when the array is none that a writer of this format makes.
EvalArray describe_dataset(hid_t dataset, const std::string& key, EvalKind kind) {
  const Hdf5Id type(H5Dget_type(dataset), H5Tclose, "HDF5 type");
  std::vector<int64_t> shape = shape_of(dataset);
  if (shape.empty()) throw Error(key + " is a single value");
  shape.erase(shape.begin());
  if (H5Tis_variable_str(type) > 0) return {key, EvalKind::kText, at::kByte, shape};
  const auto dtype = tensor_type(type);
  if (!dtype) throw Error(key + " is of a type that no tensor has");
  return {key, kind, *dtype, shape};
}

void list_arrays(hid_t file, const std::string& key, std::vector<EvalArray>& arrays) {
  const Hdf5Id object(H5Oopen(file, key.c_str(), H5P_DEFAULT), H5Oclose, "cannot open " + key);
  if (H5Iget_type(object) == H5I_DATASET) {
    arrays.push_back(describe_dataset(object, key, EvalKind::kTensor));
  } else if (H5Aexists(object, "ragged") > 0) {
    arrays.push_back(describe_dataset(open_dataset(file, key + "/values"), key, EvalKind::kRagged));
  } else if (H5Iget_type(object) == H5I_GROUP) {
    for (const auto& name : members(object)) list_arrays(file, key + "/" + name, arrays);
  }
}

Hdf5Id open_file(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    const bool has_part = std::filesystem::exists(path + ".part");
    throw Error(fmt::format("{}: no such file{}", path,
                            has_part ? fmt::format("; {}.part holds the rows of an evaluation that "
                                                   "did not come to its end",
                                                   path)
                                     : ""));
  }
  return open_hdf5(path);
}

template <class T>
T required(const std::string& path, const OrderedMap<Attribute>& attributes, const char* name) {
  const Attribute* value = attributes.find(name);
  if (value != nullptr && std::holds_alternative<T>(*value)) return std::get<T>(*value);
  throw Error(
      fmt::format("{}: not a file of evaluation outputs: it has no attribute \"{}\"", path, name));
}

}  // namespace

struct EvalFile::File {
  Hdf5Id id;
};

EvalFile::EvalFile(std::string path, InterruptCheck interrupt)
    : path_(std::move(path)), interrupt_(std::move(interrupt)) {
  const Hdf5Lock lock;
  file_ = std::make_unique<File>(File{open_file(path_)});
  attributes_ = read_attributes(file_->id);
  const auto version = required<int64_t>(path_, attributes_, "format_version");
  if (version > kNewestFormat) {
    throw Error(fmt::format("{}: format {} is newer than this program, which reads format {}",
                            path_, version, kNewestFormat));
  }
  rows_ = required<int64_t>(path_, attributes_, "rows");
  complete_ = required<bool>(path_, attributes_, "complete");
  try {
    for (const char* group : {"labels", "outputs"}) {
      if (H5Lexists(file_->id, group, H5P_DEFAULT) > 0) list_arrays(file_->id, group, arrays_);
    }
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path_, error.what()));
  }
}

EvalFile::~EvalFile() = default;
EvalFile::EvalFile(EvalFile&&) noexcept = default;

std::vector<std::string> EvalFile::keys() const {
  std::vector<std::string> keys;
  for (const auto& array : arrays_) keys.push_back(array.key);
  return keys;
}

bool EvalFile::contains(std::string_view key) const {
  return std::any_of(arrays_.begin(), arrays_.end(),
                     [&](const EvalArray& array) { return array.key == key; });
}

const EvalArray& EvalFile::array(std::string_view key) const {
  std::string known;
  for (const auto& array : arrays_) {
    if (array.key == key) return array;
    known += (known.empty() ? "" : ", ") + array.key;
  }
  throw Error(
      fmt::format("{}: no \"{}\"; there are: {}", path_, key, known.empty() ? "none" : known));
}

const EvalArray& EvalFile::checked(std::string_view key, EvalKind kind, int64_t first,
                                   int64_t count) const {
  throw_if_interrupted();
  const EvalArray& found = array(key);
  if (found.kind != kind) {
    constexpr const char* kNames[] = {"a tensor", "ragged", "text"};
    throw Error(fmt::format("{}: {} is {}, not {}", path_, key,
                            kNames[static_cast<int>(found.kind)], kNames[static_cast<int>(kind)]));
  }
  check_rows(key, first, count);
  return found;
}

void EvalFile::check_rows(std::string_view key, int64_t first, int64_t count) const {
  if (first < 0 || count < 0 || first > rows_ || count > rows_ - first) {
    throw Error(fmt::format("{}: {}: {} rows from row {} on were asked for, it has {}", path_, key,
                            count, first, rows_));
  }
}

at::Tensor EvalFile::read_rows(const std::string& name, const EvalArray& array, int64_t first,
                               int64_t count) const {
  std::vector<int64_t> shape{count};
  shape.insert(shape.end(), array.shape.begin(), array.shape.end());
  at::Tensor values = at::empty(shape, at::TensorOptions().dtype(array.dtype));
  if (values.numel() == 0) return values;
  const std::vector<hsize_t> lengths(shape.begin(), shape.end());
  const Hdf5Id dataset = open_dataset(file_->id, name);
  check_hdf5(H5Dread(dataset, hdf5_type(array.dtype), hdf5_space(lengths),
                     hdf5_rows(dataset, static_cast<hsize_t>(first), lengths), H5P_DEFAULT,
                     values.mutable_data_ptr()),
             fmt::format("{}: cannot read {}", path_, name));
  return values;
}

int64_t EvalFile::index_length() const {
  const Hdf5Lock lock;
  return shape_of(open_dataset(file_->id, "index")).at(0);
}

at::Tensor EvalFile::index(int64_t first, int64_t count) const {
  check_rows("index", first, count);
  const Hdf5Lock lock;
  return read_rows("index", {"index", EvalKind::kTensor, at::kLong, {}}, first, count);
}

void EvalFile::throw_if_interrupted() const {
  if (interrupt_) interrupt_();
}

at::Tensor EvalFile::read(std::string_view key, int64_t first, int64_t count) const {
  const EvalArray& array = checked(key, EvalKind::kTensor, first, count);
  const Hdf5Lock lock;
  return read_rows(array.key, array, first, count);
}

std::vector<at::Tensor> EvalFile::read_ragged(std::string_view key, int64_t first,
                                              int64_t count) const {
  const EvalArray& array = checked(key, EvalKind::kRagged, first, count);
  const Hdf5Lock lock;
  const at::Tensor offsets =
      read_rows(array.key + "/offsets", {"", EvalKind::kTensor, at::kLong, {}}, first, count + 1);
  const int64_t* offset = offsets.const_data_ptr<int64_t>();
  const at::Tensor values =
      read_rows(array.key + "/values", array, offset[0], offset[count] - offset[0]);
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < count; ++i) {
    rows.push_back(values.slice(0, offset[i] - offset[0], offset[i + 1] - offset[0]));
  }
  return rows;
}

std::vector<std::string> EvalFile::read_texts(std::string_view key, int64_t first,
                                              int64_t count) const {
  const EvalArray& array = checked(key, EvalKind::kText, first, count);
  std::vector<std::string> texts(static_cast<size_t>(count));
  if (count == 0) return texts;
  const Hdf5Lock lock;
  const Hdf5Id dataset = open_dataset(file_->id, array.key);
  const Hdf5Id type = hdf5_text_type();
  const std::vector<hsize_t> lengths{static_cast<hsize_t>(count)};
  const Hdf5Id space = hdf5_space(lengths);
  std::vector<char*> characters(texts.size(), nullptr);
  check_hdf5(H5Dread(dataset, type, space, hdf5_rows(dataset, static_cast<hsize_t>(first), lengths),
                     H5P_DEFAULT, static_cast<void*>(characters.data())),
             fmt::format("{}: cannot read {}", path_, key));
  for (size_t i = 0; i < texts.size(); ++i) {
    if (characters[i] != nullptr) texts[i] = characters[i];
  }
  check_hdf5(H5Dvlen_reclaim(type, space, H5P_DEFAULT, static_cast<void*>(characters.data())),
             "HDF5 memory");
  return texts;
}

int64_t EvalFile::rows_per_block(std::string_view key) const {
  const EvalArray& found = array(key);
  auto bytes = static_cast<int64_t>(c10::elementSize(found.dtype));
  for (const int64_t length : found.shape) bytes *= length;
  return std::max<int64_t>(kBlockBytes / std::max<int64_t>(bytes, 1), 1);
}

int64_t EvalFile::stored_bytes(std::string_view key) const {
  const EvalArray& found = array(key);
  const Hdf5Lock lock;
  const auto bytes_of = [&](const std::string& name) {
    return static_cast<int64_t>(H5Dget_storage_size(open_dataset(file_->id, name)));
  };
  if (found.kind != EvalKind::kRagged) return bytes_of(found.key);
  return bytes_of(found.key + "/offsets") + bytes_of(found.key + "/values");
}

}  // namespace stepop
