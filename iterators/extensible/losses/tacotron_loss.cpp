#include "iterators/extensible/step/loss.h"
#include "iterators/losses/tacotron.h"

namespace stepop::extensible {
namespace {

class NvTacotron2Loss : public Loss {
 public:
  struct Params {
    Port mel, mel_postnet, gate, mel_target, gate_target;

    void declare(Parameters& p) {
      p.require("mel_output_key", mel, "[B, mels, T]");
      p.require("mel_output_postnet_key", mel_postnet, "[B, mels, T]");
      p.require("gate_output_key", gate, "logits, [B, T]");
      p.require("mel_target_key", mel_target, "[B, mels, T]");
      p.require("gate_target_key", gate_target, "0 or 1, [B, T]");
    }
  };

  NvTacotron2Loss(const Params& params, Ports& ports)
      : mel_target_(ports.reads(params.mel_target)),
        mel_(ports.reads(params.mel)),
        mel_postnet_(ports.reads(params.mel_postnet)),
        gate_target_(ports.reads(params.gate_target)),
        gate_(ports.reads(params.gate)) {}

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
                     {"The loss of Tacotron 2: spectrograms, and where speech ends."});

}  // namespace
}  // namespace stepop::extensible
