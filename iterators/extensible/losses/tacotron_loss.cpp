#include "iterators/extensible/step/loss.h"
#include "iterators/losses/tacotron.h"

namespace stepop::extensible {
namespace {

class NvTacotron2Loss : public Loss {
 public:
  NvTacotron2Loss(const Config& params, Ports& ports)
      : mel_target_(ports.reads(params, "mel_target_key")),
        mel_(ports.reads(params, "mel_output_key")),
        mel_postnet_(ports.reads(params, "mel_output_postnet_key")),
        gate_target_(ports.reads(params, "gate_target_key")),
        gate_(ports.reads(params, "gate_output_key")) {}

  at::Tensor compute(StepState& state, const Iteration&, Scalars& metrics) override {
    const auto loss = stepop::losses::tacotron2(state.tensor(mel_), state.tensor(mel_postnet_),
                                                state.tensor(gate_), state.tensor(mel_target_),
                                                state.tensor(gate_target_));
    metrics.set("mel_loss", loss.mel.detach());
    metrics.set("gate_loss", loss.gate.detach());
    return loss.mel + loss.gate;
  }

 private:
  Slot mel_target_, mel_, mel_postnet_, gate_target_, gate_;
};

STEPOP_REGISTER_LOSS(nv_tacotron2_loss, NvTacotron2Loss,
                     {"The loss of Tacotron 2: spectrograms, and where speech ends.",
                      {{"mel_output_key", "", "[B, mels, T]"},
                       {"mel_output_postnet_key", "", "[B, mels, T]"},
                       {"gate_output_key", "", "logits, [B, T]"},
                       {"mel_target_key", "", "[B, mels, T]"},
                       {"gate_target_key", "", "0 or 1, [B, T]"}}});

}  // namespace
}  // namespace stepop::extensible
