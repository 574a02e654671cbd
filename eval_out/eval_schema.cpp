#include "eval_out/eval_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "eval_out/hdf5/hdf5_file.h"
#include "eval_out/hdf5/hdf5_types.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

constexpr int64_t kMaxDimensions = 32;  // H5S_MAX_RANK

Error output_error(std::string_view key, const std::string& message) {
  return Error(fmt::format("eval_op: {}{}", key, message));
}

void check_key(std::string_view key) {
  const auto bad = [&](const std::string& why) {
    return Error(
        fmt::format("eval_op: the key \"{}\" {}; a key is parts such as \"logits\" or "
                    "\"encoder/mean\"",
                    key, why));
  };
  if (key.find('\0') != std::string_view::npos || !is_utf8(key)) throw bad("is not UTF-8 text");
  if (static_cast<size_t>(std::count(key.begin(), key.end(), '/')) >= kMostGroups) {
    throw bad(fmt::format("has more than {} parts", kMostGroups));
  }
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view part = key.substr(begin, end - begin);
    if (part.empty()) throw bad("has an empty part");
    if (part == "." || part == "..") throw bad(fmt::format("has the part \"{}\"", part));
    begin = end + 1;
  }
}

void check_groups(const OrderedMap<EvalValue>& values) {
  for (const auto& [array, value] : values) {
    for (const auto& [other, unused] : values) {
      if (!other.starts_with(array + "/")) continue;
      throw output_error(
          array, fmt::format(" is an array, so that {} cannot be below it; rename one", other));
    }
  }
}

at::ScalarType checked_type(std::string_view key, const at::Tensor& tensor) {
  if (!tensor.defined()) throw output_error(key, " is an undefined tensor");
  if (tensor.layout() != at::kStrided) {
    throw output_error(key, " is a sparse tensor; return tensor.to_dense()");
  }
  const auto type = stored_type(tensor.scalar_type());
  if (!type)
    throw output_error(key, fmt::format(" has the type {}, which cannot be stored",
                                        type_name(tensor.scalar_type())));
  if (tensor.dim() > kMaxDimensions) {
    throw output_error(
        key, fmt::format(" has {} dimensions; HDF5 stores {}", tensor.dim(), kMaxDimensions));
  }
  return *type;
}

std::vector<int64_t> inner_shape(const at::Tensor& tensor) {
  return {tensor.sizes().begin() + 1, tensor.sizes().end()};
}

EvalArray describe_tensor(const std::string& key, const at::Tensor& tensor, int64_t batch_size) {
  const at::ScalarType type = checked_type(key, tensor);
  if (tensor.dim() == 0) {
    throw output_error(
        key, fmt::format(" is a single number, the batch has {}", counted(batch_size, "example")));
  }
  if (tensor.size(0) != batch_size) {
    throw output_error(key, fmt::format(" has first dimension {}, the batch has {}", tensor.size(0),
                                        counted(batch_size, "example")));
  }
  return {key, EvalKind::kTensor, type, inner_shape(tensor)};
}

EvalArray describe_ragged(const std::string& key, const std::vector<at::Tensor>& tensors,
                          int64_t batch_size) {
  if (static_cast<int64_t>(tensors.size()) != batch_size) {
    throw output_error(key,
                       fmt::format(" has {}, the batch has {}", counted(tensors.size(), "tensor"),
                                   counted(batch_size, "example")));
  }
  EvalArray array{key, EvalKind::kRagged, at::kByte, {}};
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i];
    const at::ScalarType type = checked_type(fmt::format("{}, example {},", key, i), tensor);
    if (tensor.dim() == 0) {
      throw output_error(key,
                         fmt::format(", example {}, is a single number; the examples of a ragged "
                                     "output have a first dimension, of any length",
                                     i));
    }
    if (i == 0) {
      array.dtype = type;
      array.shape = inner_shape(tensor);
    } else if (type != array.dtype || tensor.scalar_type() != tensors[0].scalar_type()) {
      throw output_error(key, fmt::format(" mixes types: example 0 is {}, example {} is {}",
                                          type_name(tensors[0].scalar_type()), i,
                                          type_name(tensor.scalar_type())));
    } else if (inner_shape(tensor) != array.shape) {
      throw output_error(
          key,
          fmt::format(": example 0 has shape {}, example {} has {}; ragged examples "
                      "differ in the first dimension only",
                      shape_text(tensors[0].sizes().vec()), i, shape_text(tensor.sizes().vec())));
    }
  }
  return array;
}

EvalArray describe_text(const std::string& key, const std::vector<std::string>& texts,
                        int64_t batch_size) {
  if (static_cast<int64_t>(texts.size()) != batch_size) {
    throw output_error(key, fmt::format(" has {}, the batch has {}", counted(texts.size(), "text"),
                                        counted(batch_size, "example")));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].find('\0') != std::string::npos) {
      throw output_error(key,
                         fmt::format(", example {}, holds a zero byte; return bytes as a uint8 "
                                     "tensor",
                                     i));
    }
    if (!is_utf8(texts[i]))
      throw output_error(key, fmt::format(", example {}, is not UTF-8 text", i));
  }
  return {key, EvalKind::kText, at::kByte, {}};
}

std::string kind_text(const EvalArray& array) {
  if (array.kind == EvalKind::kText) return "text";
  return (array.kind == EvalKind::kRagged ? "ragged " : "") + type_name(array.dtype);
}

}  // namespace

OrderedMap<EvalValue> flatten(const EvalOutputs& outputs) {
  OrderedMap<EvalValue> values;
  for (const auto& [key, value] : outputs.outputs) values.set("outputs/" + key, value);
  for (const auto& [key, label] : outputs.labels) values.set("labels/" + key, label.value());
  for (const auto& [key, label] : outputs.labels) {
    if (!label.has_weight()) continue;
    // One number is the weight of each example.
    const at::Tensor weight = label.weight();
    values.set(std::string(kWeights) + key,
               weight.dim() == 0 ? weight.expand(label.value().sizes()) : weight);
  }
  return values;
}

std::vector<EvalArray> describe(const OrderedMap<EvalValue>& values, int64_t batch_size) {
  std::vector<EvalArray> arrays;
  for (const auto& [key, value] : values) {
    check_key(key);
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) {
      arrays.push_back(describe_tensor(key, *tensor, batch_size));
    } else if (const auto* tensors = std::get_if<std::vector<at::Tensor>>(&value)) {
      arrays.push_back(describe_ragged(key, *tensors, batch_size));
    } else {
      arrays.push_back(describe_text(key, std::get<std::vector<std::string>>(value), batch_size));
    }
  }
  check_groups(values);
  return arrays;
}

void check_eval_outputs(const EvalOutputs& outputs, int64_t batch_size) {
  describe(flatten(outputs), batch_size);
  for (const auto& [key, label] : outputs.labels) {
    if (label.value().dim() == 1) continue;
    throw output_error(
        "labels/" + key,
        fmt::format(" has the shape {}; a label is one number an example, [{}]: {}, or return "
                    "it in outputs",
                    shape_text(label.value().sizes().vec()), batch_size,
                    label.value().numel() == batch_size ? "flatten() makes it so"
                                                        : "take the mean over the rest"));
  }
}

void check_same(const std::vector<EvalArray>& first, const std::vector<EvalArray>& batch,
                const std::string& rows) {
  const auto find = [](const std::vector<EvalArray>& arrays, const std::string& key) {
    return std::find_if(arrays.begin(), arrays.end(),
                        [&](const EvalArray& array) { return array.key == key; });
  };
  for (const auto& array : batch) {
    const auto known = find(first, array.key);
    if (known == first.end()) {
      throw output_error(array.key,
                         fmt::format(" appears in {}; the first batch did not have it", rows));
    }
    if (array.kind != known->kind || array.dtype != known->dtype) {
      throw output_error(array.key, fmt::format(" is {} in {}, it was {} in the first batch",
                                                kind_text(array), rows, kind_text(*known)));
    }
    if (array.shape != known->shape) {
      throw output_error(array.key,
                         fmt::format(" has shape {} an example in {}, it had {} in the first batch",
                                     shape_text(array.shape), rows, shape_text(known->shape)));
    }
  }
  for (const auto& array : first) {
    if (find(batch, array.key) != batch.end()) continue;
    throw output_error(array.key, fmt::format(" is missing in {}; the first batch had it", rows));
  }
}

}  // namespace stepop
