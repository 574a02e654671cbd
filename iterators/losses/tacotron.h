#pragma once

#include <ATen/core/Tensor.h>

namespace stepop::losses {

/// The two parts of the loss of Tacotron 2 (Shen et al., 2018), [] each.
struct TacotronLoss {
  at::Tensor mel;  ///< Mean squared differences of both spectrograms, before and after the postnet.
  at::Tensor gate;  ///< Binary cross entropy of the logits for the end of speech.
};

/// `mel`, `mel_postnet` and `mel_target` have one shape; `gate` and `gate_target` have one shape.
/// No gradient reaches the targets. Throws Error for different shapes.
TacotronLoss tacotron2(const at::Tensor& mel, const at::Tensor& mel_postnet, const at::Tensor& gate,
                       const at::Tensor& mel_target, const at::Tensor& gate_target);

}  // namespace stepop::losses
