#include "models/exported/safe_operations.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/enum_tag.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

using torch::jit::Stack;

constexpr std::string_view kAten = "aten::";

/// The namespaces of LibTorch beside `aten`: parts of its compilers, of its quantization and of its
/// communication between processes. Those that begin with an underscore are refused, too.
constexpr std::array<std::string_view, 19> kOfLibTorch = {
    "c10d",   "cuda",     "export",           "inductor",     "inductor_prims",
    "mkl",    "mkldnn",   "mkldnn_prepacked", "onednn",       "prepacked",
    "prim",   "prims",    "profiler",         "quantization", "quantized",
    "sparse", "symm_mem", "static_runtime",   "xnnpack"};

struct Reason {
  std::string_view names;  ///< Between spaces; `*` stands for anything at the end.
  const char* why;
};

constexpr const char* kUnchecked = "does not check the bounds of what it reads or writes";
constexpr const char* kOtherMemory = "puts other memory into a tensor";
constexpr const char* kNotDense =
    "is for tensors that are not dense, whose indices are not checked";
constexpr const char* kQuantized = "is for quantized tensors, which are not supported";

constexpr std::array kRefused = {
    Reason{"from_file", "opens a file"},  // the only one; it also makes files
    Reason{"set set_ set_data", kOtherMemory},
    Reason{"segment_reduce ctc_loss fractional_max_pool2d fractional_max_pool3d record_stream "
           "slice_inverse slow_conv_transpose2d slow_conv_transpose3d",
           kUnchecked},
    Reason{"batch_norm_elemt batch_norm_gather_stats* batch_norm_stats batch_norm_update_stats "
           "cudnn_* miopen_* mkldnn_* mps_* to_mkldnn*",
           "is a part of another operation, which checks its arguments"},
    Reason{"sparse_* to_sparse* copy_sparse* resize_as_sparse* hspmm smm sspaddmm coalesce "
           "indices* values* ccol_indices* col_indices* crow_indices* row_indices* nested_* "
           "to_padded_tensor",
           kNotDense},
    Reason{"quantize* quantized_* q_* fbgemm_* int_repr dequantize choose_qparams_optimized "
           "empty_quantized fused_moving_avg_obs_fake_quant",
           kQuantized},
};

/// The operations with an underscore at the beginning that graphs of torch.export have, also after
/// `run_decompositions()`. Those called unsafe check their indices all the same: they are unsafe
/// for autograd or in compiled code.
constexpr std::string_view kInner =
    "__* _adaptive_avg_pool2d _adaptive_avg_pool3d _add_relu _add_relu_ _addmm_activation _aminmax "
    "_assert_async _assert_scalar _batch_norm_no_update _batch_norm_with_update "
    "_batch_norm_with_update_functional _cast_* _cdist_forward _conj _conj_copy _conj_physical "
    "_convolution _convolution_mode _dim_arange _embedding_bag _embedding_bag_forward_only "
    "_euclidean_dist _fft_c2c _fft_c2r _fft_r2c _foreach_* _functional_* _int_mm _is_all_true "
    "_is_any_true _lazy_clone _linalg_* _local_scalar_dense _log_softmax _logcumsumexp "
    "_native_batch_norm_legit _native_batch_norm_legit_functional "
    "_native_batch_norm_legit_no_training _neg_view _neg_view_copy _pack_padded_sequence "
    "_pad_circular _pad_enum _pad_packed_sequence _pdist_forward _prelu_kernel _reshape_copy "
    "_safe_softmax _sample_dirichlet _scaled_dot_product_* _shape_as_tensor _slow_conv2d_forward "
    "_softmax _stack _standard_gamma _to_copy _to_cpu _trilinear _unique _unique2 _unsafe_index "
    "_unsafe_index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate _unsafe_view "
    "_upsample_* _weight_norm _weight_norm_interface";

bool is_among(std::string_view name, std::string_view names) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    const std::string_view each = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
    const bool fits =
        each.ends_with('*') ? name.starts_with(each.substr(0, each.size() - 1)) : name == each;
    if (fits) return true;
  }
  return false;
}

std::string why_refused_in_aten(const c10::OperatorHandle& operation, std::string_view name) {
  for (const auto& [names, why] : kRefused) {
    if (is_among(name, names)) return why;
  }
  // Gradients are made here by autograd. Parts of a backward pass trust what the forward pass kept
  // for them, such as the places of the largest values.
  const bool is_backward = name.find("backward") != std::string_view::npos;
  if (is_backward && !operation.hasTag(at::Tag::pointwise)) return kUnchecked;
  if (!is_backward && name.starts_with('_') && !is_among(name, kInner)) {
    return "is a part of LibTorch that torch.export does not write";
  }
  const auto& arguments = operation.schema().arguments();
  if (std::ranges::any_of(arguments, [](const c10::Argument& each) { return each.is_out(); })) {
    return "writes into memory that it is given (out=)";
  }
  return "";
}

[[noreturn]] void fail_size(const char* what, at::IntArrayRef found,
                            const std::vector<int64_t>& expected) {
  throw Error(fmt::format("{} is [{}], expected [{}]", what, fmt::join(found, ", "),
                          fmt::join(expected, ", ")));
}

void check_sizes(const char* what, const at::Tensor& tensor, const std::vector<int64_t>& expected) {
  if (tensor.sizes() != at::IntArrayRef(expected)) fail_size(what, tensor.sizes(), expected);
}

/// Input, weight, bias, running mean and variance; the last two may be other arguments.
void check_batch_norm(const Stack& arguments) {
  const at::Tensor& input = arguments.at(0).toTensor();
  if (input.dim() < 2) throw Error("the input has no channels");
  for (size_t i = 1; i < 5 && i < arguments.size(); ++i) {
    if (!arguments[i].isTensor() || !arguments[i].toTensor().defined()) continue;
    check_sizes("a number for each channel", arguments[i].toTensor(), {input.size(1)});
  }
}

/// A direction and a length for each row or column of it.
void check_weight_norm(const Stack& arguments) {
  const at::Tensor& v = arguments.at(0).toTensor();
  const at::Tensor& g = arguments.at(1).toTensor();
  const int64_t dim = arguments.at(2).toInt();
  if (dim != 0 && dim != v.dim() - 1) return;  // computed by operations that check
  if (v.dim() == 0 || g.numel() != v.size(dim)) {
    fail_size("the length of the weights", g.sizes(), {v.dim() == 0 ? 1 : v.size(dim)});
  }
  if (g.scalar_type() != v.scalar_type())
    throw Error("the weights and their lengths differ in type");
}

/// oneDNN takes the sizes of weights from those of the state.
void check_lstm(const Stack& arguments) {
  const at::Tensor& input = arguments.at(0).toTensor();
  const auto state = arguments.at(1).toTensorVector();
  const auto weights = arguments.at(2).toTensorVector();
  const bool has_biases = arguments.at(3).toBool();
  const int64_t layers = arguments.at(4).toInt();
  const int64_t directions = arguments.at(7).toBool() ? 2 : 1;
  const bool is_batch_first = arguments.at(8).toBool();
  if (input.dim() != 3 || state.size() != 2 || state[0].dim() != 3 || state[1].dim() != 3) {
    throw Error("the input and the two states are not of three dimensions");
  }
  const int64_t batch = input.size(is_batch_first ? 0 : 1);
  const int64_t hidden = state[1].size(2);
  const int64_t given = state[0].size(2);  // other than `hidden` where it is projected
  const size_t for_each = (has_biases ? 4 : 2) + (given != hidden ? 1 : 0);
  const int64_t count = layers > 0 && layers < 10'000 ? layers * directions : 0;
  if (count == 0 || weights.size() != static_cast<size_t>(count) * for_each) {
    throw Error(fmt::format("it has {} weights for {} layers", weights.size(), layers));
  }
  check_sizes("the state", state[0], {count, batch, given});
  check_sizes("the state", state[1], {count, batch, hidden});
  for (size_t i = 0; i < weights.size(); ++i) {
    const bool is_first = i < static_cast<size_t>(directions) * for_each;
    const int64_t taken = is_first ? input.size(2) : directions * given;
    const size_t part = i % for_each;
    const bool is_projection = given != hidden && part == for_each - 1;
    const std::vector<int64_t> expected = is_projection ? std::vector{given, hidden}
                                          : part == 0   ? std::vector{4 * hidden, taken}
                                          : part == 1   ? std::vector{4 * hidden, given}
                                                        : std::vector{4 * hidden};
    check_sizes("a weight", weights[i], expected);
  }
  if (at::autocast::is_autocast_enabled(input.device().type())) return;
  const auto is_other = [&](const at::Tensor& each) {
    return each.scalar_type() != input.scalar_type();
  };
  if (std::ranges::any_of(weights, is_other) || std::ranges::any_of(state, is_other)) {
    throw Error("the input, the states and the weights differ in type");
  }
}

/// Queries, keys, values, and perhaps a mask, which is spread over what is compared.
void check_attention(const Stack& arguments) {
  const at::Tensor& query = arguments.at(0).toTensor();
  const at::Tensor& key = arguments.at(1).toTensor();
  const at::Tensor& value = arguments.at(2).toTensor();
  if (std::min({query.dim(), key.dim(), value.dim()}) < 2) throw Error("its inputs have no rows");
  if (key.size(-2) != value.size(-2)) {
    throw Error(fmt::format("it has {} keys and {} values", key.size(-2), value.size(-2)));
  }
  constexpr size_t kLastMask = 5;
  for (size_t i = 3; i <= kLastMask && i < arguments.size(); ++i) {
    if (!arguments[i].isTensor() || !arguments[i].toTensor().defined()) continue;
    const at::Tensor& mask = arguments[i].toTensor();
    const auto fits = [&](int64_t dim, int64_t size) {
      return mask.dim() < -dim || mask.size(dim) == 1 || mask.size(dim) == size;
    };
    if (fits(-1, key.size(-2)) && fits(-2, query.size(-2))) continue;
    fail_size("the mask", mask.sizes(), {query.size(-2), key.size(-2)});
  }
}

/// Checks the arguments of one implementation, which has dimensions for examples and heads.
void check_attention_kernel(const Stack& arguments) {
  check_attention(arguments);
  const at::Tensor& query = arguments.at(0).toTensor();
  for (size_t i = 1; i < 3; ++i) {
    const at::Tensor& other = arguments[i].toTensor();
    const bool fits = query.dim() == 4 && other.dim() == 4 && query.size(0) == other.size(0) &&
                      other.size(1) > 0 && query.size(1) % other.size(1) == 0 &&
                      other.size(1) == arguments[1].toTensor().size(1);
    if (!fits) {
      throw Error(fmt::format("queries of [{}] do not fit [{}]", fmt::join(query.sizes(), ", "),
                              fmt::join(other.sizes(), ", ")));
    }
  }
  for (size_t i = 3; i < 6 && i < arguments.size(); ++i) {
    if (!arguments[i].isTensor() || !arguments[i].toTensor().defined()) continue;
    const at::Tensor& mask = arguments[i].toTensor();
    for (int64_t dim = 0; mask.dim() == 4 && dim < 2; ++dim) {
      if (mask.size(dim) == 1 || mask.size(dim) == query.size(dim)) continue;
      fail_size("the mask", mask.sizes(), query.sizes().vec());
    }
  }
}

}  // namespace

std::string why_refused(const c10::OperatorHandle& operation) {
  const std::string_view name = operation.operator_name().name;
  if (name.starts_with(kAten)) return why_refused_in_aten(operation, name.substr(kAten.size()));
  const std::string_view space = name.substr(0, name.find(':'));
  if (!space.starts_with('_') && std::ranges::find(kOfLibTorch, space) == kOfLibTorch.end()) {
    return "";
  }
  return "is a part of LibTorch that torch.export does not write";
}

ArgumentCheck find_argument_check(const c10::OperatorHandle& operation) {
  static const std::map<std::string_view, ArgumentCheck> checks = {
      {"aten::native_batch_norm", check_batch_norm},
      {"aten::_native_batch_norm_legit", check_batch_norm},
      {"aten::_native_batch_norm_legit_functional", check_batch_norm},
      {"aten::_native_batch_norm_legit_no_training", check_batch_norm},
      {"aten::_batch_norm_no_update", check_batch_norm},
      {"aten::_batch_norm_with_update", check_batch_norm},
      {"aten::_batch_norm_with_update_functional", check_batch_norm},
      {"aten::_weight_norm", check_weight_norm},
      {"aten::_weight_norm_interface", check_weight_norm}};
  const auto& [name, overload] = operation.operator_name();
  if (name == "aten::scaled_dot_product_attention") return check_attention;
  if (name.starts_with("aten::_scaled_dot_product_")) return check_attention_kernel;
  if (name == "aten::lstm" && overload == "input") return check_lstm;
  const auto found = checks.find(name);
  return found == checks.end() ? nullptr : found->second;
}

}  // namespace stepop
