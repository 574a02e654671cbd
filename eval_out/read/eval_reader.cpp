#include "eval_out/read/eval_reader.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <variant>

#include "eval_out/hdf5/hdf5.h"
#include "eval_out/hdf5/hdf5_arrays.h"
#include "eval_out/hdf5/hdf5_attributes.h"
#include "eval_out/hdf5/hdf5_file.h"
#include "eval_out/hdf5/hdf5_probe.h"
#include "eval_out/hdf5/hdf5_references.h"
#include "eval_out/hdf5/hdf5_types.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "eval_out/read/eval_layout.h"
#include "eval_out/read/find_evaluations.h"
#include "runtime/core/base/number_text.h"

namespace stepop {
namespace {

constexpr int64_t kNewestFormat = 1;

Hdf5Id open_outputs(const std::string& path, EvalOrigin origin, const InterruptCheck& interrupt) {
  if (!std::filesystem::exists(path)) throw Error(path + ": no such file" + part_hint(path));
  if (origin != EvalOrigin::kOwn && std::filesystem::is_regular_file(path)) {
    probe_hdf5(path, interrupt);
  }
  return open_hdf5(path);
}

constexpr const char* kNoOutputs = "not a file of evaluation outputs: ";

template <class T>
T required(const OrderedMap<Attribute>& attributes, const char* name) {
  const Attribute* value = attributes.find(name);
  if (value != nullptr && std::holds_alternative<T>(*value)) return std::get<T>(*value);
  throw Error(fmt::format("{}it has no attribute \"{}\"", kNoOutputs, name));
}

/// The memory for texts, at most `left` bytes. Each text is in the file once, but a thousand
/// references to one long text would fill the memory.
struct TextMemory {
  int64_t left;

  Hdf5Id properties() {
    Hdf5Id transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose, "HDF5 properties");
    const auto take = [](size_t bytes, void* data) -> void* {
      auto& memory = *static_cast<TextMemory*>(data);
      memory.left -= static_cast<int64_t>(bytes);
      return memory.left < 0 ? nullptr : std::malloc(bytes);
    };
    const auto give_back = [](void* place, void*) { std::free(place); };
    check_hdf5(H5Pset_vlen_mem_manager(transfer, take, this, give_back, this), "HDF5 properties");
    return transfer;
  }
};

}  // namespace

struct EvalFile::File {
  File(Hdf5Id opened, const std::string& path)
      : id(std::move(opened)), references(id), size(size_to_keep(id, path)) {}

  Hdf5Id id;
  Hdf5References references;
  int64_t size;
};

EvalFile::EvalFile(std::string path, InterruptCheck interrupt, EvalOrigin origin)
    : path_(std::move(path)), interrupt_(std::move(interrupt)) {
  const Hdf5Lock lock;
  file_ = std::make_unique<File>(open_outputs(path_, origin, interrupt_), path_);
  in_hdf5_file(path_, [&] { look_inside(origin); });
}

void EvalFile::look_inside(EvalOrigin origin) {
  file_bytes_ = hdf5_file_size(file_->id);
  attributes_ = read_attributes(file_->id);
  const auto version = required<int64_t>(attributes_, "format_version");
  if (version > kNewestFormat) {
    throw Error(fmt::format("format {} is newer than this program, which reads format {}", version,
                            kNewestFormat));
  }
  rows_ = required<int64_t>(attributes_, "rows");
  if (rows_ < 0) throw Error(fmt::format("{}its attribute \"rows\" is {}", kNoOutputs, rows_));
  complete_ = required<bool>(attributes_, "complete");
  if (!has_link(file_->id, "index")) {
    throw Error(fmt::format("{}it has no \"index\"", kNoOutputs));
  }
  Hdf5Sizes sizes(file_->id);
  Hdf5Sizes* const checked_sizes = origin == EvalOrigin::kAnywhere ? &sizes : nullptr;
  index_length_ = check_index_array(file_->id, rows_, checked_sizes);
  arrays_ = list_eval_arrays(file_->id, rows_, checked_sizes);
}

bool EvalFile::is_of(const OrderedMap<Attribute>& attributes, int64_t rows) const {
  for (const auto& [name, value] : attributes) {
    const Attribute* stored = attributes_.find(name);
    if (stored == nullptr || *stored != value) return false;
  }
  return index_length_ == rows && rows_ <= rows;
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

std::string EvalFile::key_list() const {
  std::string list;
  for (const auto& array : arrays_) list += (list.empty() ? "" : ", ") + array.key;
  return list.empty() ? "none" : list;
}

std::vector<std::string> EvalFile::keys_named(const std::string& name) const {
  if (contains(name)) return {name};
  std::vector<std::string> found;
  for (const char* group : {"outputs/", "labels/"}) {
    if (contains(group + name)) found.push_back(group + name);
  }
  return found;
}

const EvalArray& EvalFile::array(std::string_view key) const {
  for (const auto& array : arrays_) {
    if (array.key == key) return array;
  }
  throw Error(fmt::format("{}: no \"{}\"; there are: {}", path_, key, key_list()));
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
    throw Error(fmt::format("{}: {}: asked for {} from row {} on, it has {}", path_, key,
                            counted(count, "row"), first, rows_));
  }
}

at::Tensor EvalFile::read_rows(const std::string& name, const EvalArray& array, int64_t first,
                               int64_t count) const {
  std::vector<int64_t> shape{count};
  shape.insert(shape.end(), array.shape.begin(), array.shape.end());
  at::Tensor values = at::empty(shape, at::TensorOptions().dtype(array.dtype));
  if (values.numel() == 0) return values;
  const std::vector<hsize_t> lengths(shape.begin(), shape.end());
  in_hdf5_file(path_, [&] {
    const Hdf5Id dataset = open_dataset(file_->id, name);
    check_hdf5(H5Dread(dataset, hdf5_type(array.dtype), hdf5_space(lengths),
                       hdf5_rows(dataset, static_cast<hsize_t>(first), lengths), H5P_DEFAULT,
                       values.mutable_data_ptr()),
               "cannot read " + name);
    Hdf5Extent(dataset, path_, file_->size).check();
  });
  return values;
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

at::Tensor EvalFile::read_counting(std::string_view key, int64_t first, int64_t count) const {
  constexpr std::string_view kLabels = "labels/";
  if (!key.starts_with(kLabels)) return {};
  const std::string weights = kWeights + std::string(key.substr(kLabels.size()));
  if (!contains(weights)) return {};
  return read(weights, first, count).ne(0).reshape({count, -1}).any(1);
}

std::vector<at::Tensor> EvalFile::read_ragged(std::string_view key, int64_t first,
                                              int64_t count) const {
  const EvalArray& array = checked(key, EvalKind::kRagged, first, count);
  const Hdf5Lock lock;
  const at::Tensor offsets = read_offsets(array, first, count);
  const int64_t* offset = offsets.const_data_ptr<int64_t>();
  const at::Tensor values =
      read_rows(array.key + "/values", array, offset[0], offset[count] - offset[0]);
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < count; ++i) {
    rows.push_back(values.slice(0, offset[i] - offset[0], offset[i + 1] - offset[0]));
  }
  return rows;
}

std::vector<int64_t> EvalFile::read_lengths(std::string_view key, int64_t first,
                                            int64_t count) const {
  const bool is_text = array(key).kind == EvalKind::kText;
  const EvalArray& array =
      checked(key, is_text ? EvalKind::kText : EvalKind::kRagged, first, count);
  const Hdf5Lock lock;
  if (is_text) return text_lengths(array, first, count);
  const at::Tensor offsets = read_offsets(array, first, count);
  const int64_t* offset = offsets.const_data_ptr<int64_t>();
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i) lengths.push_back(offset[i + 1] - offset[i]);
  return lengths;
}

/// int64 [count + 1]: the beginnings of these rows and the end of the last row.
at::Tensor EvalFile::read_offsets(const EvalArray& array, int64_t first, int64_t count) const {
  at::Tensor offsets =
      read_rows(array.key + "/offsets", {"", EvalKind::kTensor, at::kLong, {}}, first, count + 1);
  const int64_t* begin = offsets.const_data_ptr<int64_t>();
  const std::string values = array.key + "/values";
  const int64_t total = describe_hdf5(open_dataset(file_->id, values), values).shape.at(0);
  if (begin[0] >= 0 && begin[count] <= total && std::is_sorted(begin, begin + count + 1)) {
    return offsets;
  }
  throw Error(
      fmt::format("{}: {}: the file is damaged: its offsets decrease, or point outside of values",
                  path_, array.key));
}

std::vector<int64_t> EvalFile::text_lengths(const EvalArray& array, int64_t first,
                                            int64_t count) const {
  return in_hdf5_file(path_, [&] {
    return file_->references.check_texts(open_dataset(file_->id, array.key), array.key, first,
                                         count);
  });
}

std::vector<std::string> EvalFile::read_texts(std::string_view key, int64_t first,
                                              int64_t count) const {
  const EvalArray& array = checked(key, EvalKind::kText, first, count);
  std::vector<std::string> texts(static_cast<size_t>(count));
  if (count == 0) return texts;
  const Hdf5Lock lock;
  text_lengths(array, first, count);
  const Hdf5Id dataset = open_dataset(file_->id, array.key);
  const Hdf5Id type = hdf5_text_type();
  const std::vector<hsize_t> lengths{static_cast<hsize_t>(count)};
  const Hdf5Id space = hdf5_space(lengths);
  std::vector<char*> characters(texts.size(), nullptr);
  TextMemory memory{file_bytes_};
  const Hdf5Id transfer = memory.properties();
  const herr_t read =
      H5Dread(dataset, type, space, hdf5_rows(dataset, static_cast<hsize_t>(first), lengths),
              transfer, static_cast<void*>(characters.data()));
  if (memory.left < 0) {
    throw Error(
        fmt::format("{}: {}: the file is damaged: its texts are longer than the file", path_, key));
  }
  check_hdf5(read, fmt::format("{}: cannot read {}", path_, key));
  for (size_t i = 0; i < texts.size(); ++i) {
    if (characters[i] != nullptr) texts[i] = characters[i];
  }
  check_hdf5(H5Dvlen_reclaim(type, space, transfer, static_cast<void*>(characters.data())),
             "HDF5 memory");
  return texts;
}

int64_t EvalFile::rows_per_block(std::string_view key) const {
  const EvalArray& found = array(key);
  return rows_of_block(found.shape, found.dtype);
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
