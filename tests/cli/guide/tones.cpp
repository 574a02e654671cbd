#include <stepop/audio.h>
#include <stepop/stepop.h>

// Sounds [B, 1, T] to logits [B, classes], by the loudness of each mel.
class Tones : public stepop::Network {
 public:
  struct Params {
    int64_t classes = 0;
    void declare(stepop::Parameters& p) { p.require("classes", classes, "how many"); }
  };
  explicit Tones(const Params& params)
      : linear_(register_module("linear", torch::nn::Linear(80, params.classes))) {}
  at::Tensor forward(const at::Tensor& audio) override {
    if (!mel_) mel_.emplace(kMels, audio.device());
    return linear_(torch::mean((*mel_)(audio.squeeze(1)), 2));  // mels [B, 80, frames]
  }

 private:
  static constexpr stepop::audio::MelSpectrogram::Options kMels{.sampling_rate = 16000};
  std::optional<stepop::audio::MelSpectrogram> mel_;
  torch::nn::Linear linear_;
};
STEPOP_REGISTER_MODEL(Tones, {"Classes of sounds."});
