#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "eval_out/eval_outputs.h"

namespace stepop {

/// How the tensors of an evaluation are stored: uncompressed, or in HDF5 chunks with the library's
/// standard filters shuffle and deflate, which every HDF5 reader supports.
enum class EvalCompression { kNone, kGzip };

enum class EvalKind { kTensor, kRagged, kText };

/// The group of the labels' weights in a file, `weights/loss` of `labels/loss`.
inline constexpr const char* kWeights = "weights/";

/// One array of a file of evaluation outputs.
struct EvalArray {
  std::string key;  ///< `outputs/logits`, `labels/loss`, `weights/loss`
  EvalKind kind = EvalKind::kTensor;
  /// The stored type (float32 for bfloat16); kByte for text.
  at::ScalarType dtype = at::kByte;
  /// The shape of one example, or of one value of a ragged array; empty for text.
  std::vector<int64_t> shape;
};

/// Throws Error, which names the key, when `outputs` cannot be the outputs of a batch of
/// `batch_size` examples: another first dimension, ragged examples that differ in type or in a
/// dimension other than the first, a key with an empty part, a key that is array and group at once,
/// text that is not UTF-8, a sparse or quantized tensor.
void check_eval_outputs(const EvalOutputs& outputs, int64_t batch_size);

/// Outputs, labels and the labels' weights in one map, under their keys in the file.
OrderedMap<EvalValue> flatten(const EvalOutputs& outputs);

/// Describes the arrays in the flattened outputs of a batch; throws as check_eval_outputs does.
std::vector<EvalArray> describe(const OrderedMap<EvalValue>& values, int64_t batch_size);

/// Throws Error when a batch's arrays differ from the first batch: a key that vanished or appeared,
/// or another kind, type or shape. `rows` names the batch: `rows 64 to 127`.
void check_same(const std::vector<EvalArray>& first, const std::vector<EvalArray>& batch,
                const std::string& rows);

}  // namespace stepop
