#include "iterators/losses/tacotron.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/mse_loss.h>
#include <fmt/format.h>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::losses {
namespace {

void check_same_shape(const char* what, const at::Tensor& made, const at::Tensor& target) {
  if (made.sizes() == target.sizes()) return;
  throw Error(fmt::format("{}: expected the shape of the target, {}, found {}", what,
                          describe_tensor(target), describe_tensor(made)));
}

}  // namespace

TacotronLoss tacotron2(const at::Tensor& mel, const at::Tensor& mel_postnet, const at::Tensor& gate,
                       const at::Tensor& mel_target, const at::Tensor& gate_target) {
  check_same_shape("mel_output", mel, mel_target);
  check_same_shape("mel_output_postnet", mel_postnet, mel_target);
  check_same_shape("gate_output", gate, gate_target);
  const at::Tensor target = mel_target.detach().to(at::kFloat);
  return {
      at::mse_loss(mel.to(at::kFloat), target) + at::mse_loss(mel_postnet.to(at::kFloat), target),
      at::binary_cross_entropy_with_logits(gate.to(at::kFloat),
                                           gate_target.detach().to(at::kFloat))};
}

}  // namespace stepop::losses
