#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace stepop::audio {

/// The conversion of hertz to mels: `kHtk` is 2595 log10(1 + f / 700); `kSlaney`, as in librosa, is
/// linear below 1,000 Hz and logarithmic above.
enum class MelScale { kHtk, kSlaney };

double hertz_to_mel(double hertz, MelScale scale);
double mel_to_hertz(double mel, MelScale scale);

/// Triangular filters that overlap by half, evenly spaced in mels.
struct MelBank {
  int64_t sampling_rate = 22050;  ///< Samples a second.
  int64_t bins = 513;             ///< Bins of the spectrum, 0 to sampling_rate / 2 Hz.
  int64_t mels = 80;
  double lowest = 0;  ///< Hertz.
  double highest = 8000;
  MelScale scale = MelScale::kSlaney;
};

/// The weights of the bins, [mels, bins], float32, on the CPU. Each triangle has the area 1
/// (Slaney's norm), as in librosa.filters.mel and torchaudio.functional.melscale_fbanks.
at::Tensor mel_filters(const MelBank& bank);

/// Logarithms of mel spectrograms.
class MelSpectrogram {
 public:
  struct Options {
    int64_t fft = 1024;     ///< Samples of a frame.
    int64_t hop = 256;      ///< Samples from the start of a frame to the next.
    int64_t window = 1024;  ///< Samples of the window in the frame's middle, `fft` at most.
    int64_t sampling_rate = 22050;
    int64_t mels = 80;
    double lowest = 0;  ///< Hertz.
    double highest = 8000;
    MelScale scale = MelScale::kSlaney;
    bool is_power = false;        ///< Squared magnitudes are summed instead of magnitudes.
    bool divides_window = false;  ///< Spectra are divided by the window's norm.
  };

  MelSpectrogram(const Options& options, const c10::Device& device);

  /// log(max(mels, 1e-5)) of audio [B, T]: [B, mels, T / hop + 1], float32. The audio is mirrored
  /// at both ends, so that frames are centred on their samples; the window is Hann's. Throws Error
  /// for another shape, and for audio of half a frame or less.
  at::Tensor operator()(const at::Tensor& audio) const;

 private:
  Options options_;
  at::Tensor window_;   ///< [window]
  at::Tensor filters_;  ///< [mels, bins]
};

/// Maps the logarithms of mels from [log 1e-5, `highest`] to [-1, 1]; `highest` is the largest
/// expected value.
at::Tensor normalized_mel(const at::Tensor& mel, double highest);
inline constexpr double kLowestMel = -11.512925148010254;
inline constexpr double kHighestTacotronMel = 2.3143386840820312;
inline constexpr double kHighestTorchMel = 4.82;

}  // namespace stepop::audio
