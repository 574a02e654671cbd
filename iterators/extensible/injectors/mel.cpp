// Injectors that compute mel spectrograms of audio, and injectors over spectrograms [B, mels, T].
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmin.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/square.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "iterators/audio/mel.h"
#include "iterators/extensible/injectors/stored_values.h"
#include "iterators/extensible/step/host_values.h"
#include "iterators/extensible/step/injector.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {
namespace {

const at::Tensor& checked_spectrogram(const at::Tensor& x) {
  if (x.dim() == 3) return x;
  throw Error(fmt::format("expected spectrograms [B, mels, T], found {}", describe_tensor(x)));
}

/// Audio [B, T], from audio [B, T] or, with one channel, [B, 1, T].
at::Tensor without_channel(const at::Tensor& sound) {
  if (sound.dim() == 3 && sound.size(1) == 1) return sound.squeeze(1);
  if (sound.dim() == 2) return sound;
  throw Error(fmt::format("expected audio [B, T] or [B, 1, T], found {}", describe_tensor(sound)));
}

/// What both spectrograms are computed by.
struct SpectrogramParams : InOut {
  audio::MelSpectrogram::Options options;

  void declare(Parameters& p) {
    InOut::declare(p, "audio in [-1, 1], [B, T] or [B, 1, T]",
                   "[B, n_mel_channels, T / hop_length + 1]");
    p.add("filter_length", options.fft, "samples of a frame", at_least(2));
    p.add("hop_length", options.hop, "samples from frame to frame", at_least(1));
    p.add("win_length", options.window, "samples of the window", at_least(1));
    p.add("n_mel_channels", options.mels, "", at_least(1));
    p.add("mel_fmin", options.lowest, "hertz", at_least(0));
    p.add("mel_fmax", options.highest, "hertz");
    p.add("sampling_rate", options.sampling_rate, "samples a second", at_least(1));
  }
};

const audio::MelSpectrogram::Options& checked_options(const audio::MelSpectrogram::Options& options,
                                                      const Config& config) {
  if (options.window > options.fft) {
    throw config.error("win_length", fmt::format("expected filter_length, {}, at most, found {}",
                                                 options.fft, options.window));
  }
  const double most = static_cast<double>(options.sampling_rate) / 2;
  if (!(options.highest > options.lowest && options.highest <= most)) {
    throw config.error("mel_fmax",
                       fmt::format("expected more than mel_fmin, {}, and half of sampling_rate, "
                                   "{}, at most, found {}",
                                   options.lowest, most, options.highest));
  }
  return options;
}

/// The spectrogram of Tacotron 2: magnitudes, Slaney's mels. No gradient passes.
class MelSpectrogramOf : public UnaryInjector {
 public:
  struct Params : SpectrogramParams {
    bool normalizes = false;

    void declare(Parameters& p) {
      SpectrogramParams::declare(p);
      p.add("do_normalization", normalizes, "to [-1, 1]");
    }
  };

  MelSpectrogramOf(const Params& params, const Config& config, Ports& ports)
      : UnaryInjector(params, ports),
        mel_(checked_options(params.options, config), ports.context().device),
        normalizes_(params.normalizes) {}

  at::Tensor compute(const at::Tensor& x) override {
    const at::NoGradGuard no_grad;
    const at::Tensor sound = without_channel(x);
    if (!is_checked_) check_range(sound);
    const at::Tensor mel = mel_(at::clamp(sound, -1, 1));
    return normalizes_ ? audio::normalized_mel(mel, audio::kHighestTacotronMel) : mel;
  }

 private:
  /// Checks only one batch: wrong units affect every batch, and the check waits for the device.
  void check_range(const at::Tensor& sound) {
    const auto most = sound.abs().max().item<double>();
    if (most > 10) {
      throw Error(
          fmt::format("expected audio in [-1, 1], found values up to {}; `type: normalize, "
                      "shift: 0, scale: 32768` brings 16 bits there",
                      most));
    }
    is_checked_ = true;
  }

  audio::MelSpectrogram mel_;
  bool normalizes_;
  bool is_checked_ = false;
};

/// The spectrogram of torchaudio: squared magnitudes, HTK's mels. No gradient passes.
class TorchMelSpectrogram : public UnaryInjector {
 public:
  struct Params : SpectrogramParams {
    bool normalizes = false;
    std::optional<StoredValues> stored;

    void declare(Parameters& p) {
      options.scale = audio::MelScale::kHtk;
      options.is_power = true;
      SpectrogramParams::declare(p);
      p.add("normalize", options.divides_window, "spectra are divided by the window's norm");
      p.add("true_normalization", normalizes, "to [-1, 1]");
      stored = StoredValues::declare(
          p, "mel_norm_file", "a safetensors file with mel_norms, by which the mels are divided",
          "s.save_file({{'mel_norms': torch.load('{0}').contiguous()}}, 'mel_norms.safetensors')",
          "none");
    }
  };

  TorchMelSpectrogram(const Params& params, const Config& config, Ports& ports)
      : UnaryInjector(params, ports),
        mel_(checked_options(params.options, config), ports.context().device),
        normalizes_(params.normalizes) {
    if (!params.stored) return;
    const at::Tensor norms = params.stored->get("mel_norms", 1);
    if (norms.size(0) != params.options.mels) {
      throw config.error("mel_norm_file", fmt::format("expected {} numbers, n_mel_channels, found "
                                                      "{}",
                                                      params.options.mels, norms.size(0)));
    }
    norms_ = norms.to(ports.context().device).unsqueeze(-1);
  }

  at::Tensor compute(const at::Tensor& x) override {
    const at::NoGradGuard no_grad;
    at::Tensor mel = mel_(without_channel(x));
    if (norms_.defined()) mel = mel / norms_;
    return normalizes_ ? audio::normalized_mel(mel, audio::kHighestTorchMel) : mel;
  }

 private:
  audio::MelSpectrogram mel_;
  bool normalizes_;
  at::Tensor norms_;  ///< [mels, 1]; may be undefined.
};

/// Maps the output of mel_spectrogram to [-1, 1].
class NormalizeMel : public UnaryInjector {
 public:
  using Params = InOut;
  using UnaryInjector::UnaryInjector;
  at::Tensor compute(const at::Tensor& mel) override {
    const at::NoGradGuard no_grad;
    return audio::normalized_mel(mel, audio::kHighestTacotronMel);
  }
};

/// `(x - shift) / scale`, with a shift and a scale for each bin.
class FrequencyBinNormalize : public UnaryInjector {
 public:
  struct Params : InOut {
    std::optional<StoredValues> stored;

    void declare(Parameters& p) {
      InOut::declare(p, "[B, bins, T]");
      stored = StoredValues::declare(
          p, "stats_file", "a safetensors file with shift and scale, [bins]",
          "shift, scale = torch.load('{0}'); s.save_file({{'shift': shift.flatten(), 'scale': "
          "scale.flatten()}}, 'stats.safetensors')");
    }
  };

  FrequencyBinNormalize(const Params& params, Ports& ports) : UnaryInjector(params, ports) {
    const auto column = [&](const char* name) {
      return params.stored->get(name, 1).to(ports.context().device).unsqueeze(-1);
    };
    shift_ = column("shift");
    scale_ = column("scale");
  }

  at::Tensor compute(const at::Tensor& x) override {
    return (checked_spectrogram(x) - shift_) / scale_;
  }

 private:
  at::Tensor shift_, scale_;  ///< [bins, 1]
};

/// The number of the nearest centroid at each time of [B, C, T]: [B, T].
class KmeansQuantizer : public UnaryInjector {
 public:
  struct Params : InOut {
    std::optional<StoredValues> stored;

    void declare(Parameters& p) {
      InOut::declare(p, "[B, C, T]", "[B, T]");
      stored = StoredValues::declare(
          p, "centroids", "a safetensors file with centroids, [k, C]",
          "_, c = torch.load('{0}'); s.save_file({{'centroids': c.contiguous()}}, "
          "'centroids.safetensors')");
    }
  };

  KmeansQuantizer(const Params& params, Ports& ports)
      : UnaryInjector(params, ports),
        centroids_(params.stored->get("centroids", 2).to(ports.context().device)),
        squares_(at::square(centroids_).sum(1, /*keepdim=*/true)) {}

  at::Tensor compute(const at::Tensor& x) override {
    const at::NoGradGuard no_grad;
    if (x.dim() != 3 || x.size(1) != centroids_.size(1)) {
      throw Error(
          fmt::format("expected [B, C, T] with {} channels, as the centroids have, found "
                      "{}",
                      centroids_.size(1), describe_tensor(x)));
    }
    // The square of x is left out: it is the same for all centroids.
    const at::Tensor distances = squares_ - at::matmul(centroids_, x.to(at::kFloat)) * 2;
    return at::argmin(at::nan_to_num(distances, std::numeric_limits<float>::max()), 1);
  }

 private:
  at::Tensor centroids_;  ///< [k, C]
  at::Tensor squares_;    ///< [k, 1]
};

/// Sets some bands of frequencies and of time to zero (SpecAugment, Park et al., 2019), the same
/// bands in the whole batch.
class MelMask : public UnaryInjector {
 public:
  struct Params : InOut {
    int64_t frequency = 27;
    int64_t frequencies = 1;
    int64_t time = 5;
    int64_t times = 3;

    void declare(Parameters& p) {
      InOut::declare(p, "[B, mels, T]");
      p.add("frequency_mask_size_high", frequency, "a band of frequencies has less rows than this",
            at_least(0));
      p.add("frequency_mask_count", frequencies, "", at_least(0));
      p.add("time_mask_size_high", time, "a band of time has less rows than this", at_least(0));
      p.add("time_mask_count", times, "", at_least(0));
    }
  };

  MelMask(const Params& params, Ports& ports) : UnaryInjector(params, ports), p_(params) {}

  at::Tensor compute(const at::Tensor& x) override {
    at::Tensor masked = checked_spectrogram(x).clone();
    for (int64_t i = 0; i < p_.frequencies; ++i) mask(masked, 1, p_.frequency);
    for (int64_t i = 0; i < p_.times; ++i) mask(masked, 2, p_.time);
    return masked;
  }

 private:
  /// Masks fewer than `most` rows of a dimension; a band that does not fit is left out.
  static void mask(at::Tensor& x, int64_t dimension, int64_t most) {
    const int64_t rows = most > 0 ? draw(most) : 0;
    const int64_t length = x.size(dimension);
    if (rows == 0 || rows > length) return;
    x.narrow(dimension, draw(length - rows + 1), rows).zero_();
  }

  Params p_;
};

/// Joins each two neighbours of the batch into one example: their audio, and their texts with a
/// separator between. A batch of one is unchanged; the last example of an odd number is left out.
class CombineMel : public Injector {
 public:
  struct Params {
    Port audio, text, audio_lengths, text_lengths, audio_out, text_out;
    int64_t separator = 149;

    void declare(Parameters& p) {
      p.require("audio_key", audio, "[B, C, T]");
      p.require("text_key", text, "[B, L]");
      p.require("audio_lengths_key", audio_lengths, "[B]");
      p.require("text_lengths_key", text_lengths, "[B]");
      p.require("output_audio_key", audio_out, "[B / 2, C, 2 T]");
      p.require("output_text_key", text_out, "[B / 2, 2 L]");
      p.add("text_separator", separator, "between two texts");
    }
  };

  CombineMel(const Params& params, Ports& ports)
      : audio_(ports.reads(params.audio)),
        text_(ports.reads(params.text)),
        audio_lengths_(ports.reads(params.audio_lengths)),
        text_lengths_(ports.reads(params.text_lengths)),
        audio_out_(ports.writes(params.audio_out)),
        text_out_(ports.writes(params.text_out)),
        separator_(params.separator) {}

  void run(StepState& state, const Iteration&) override {
    const at::Tensor& sound = checked_spectrogram(state.tensor(audio_));
    const at::Tensor& text = state.tensor(text_);
    if (sound.size(0) == 1) {
      state.set(audio_out_, sound);
      state.set(text_out_, text);
      return;
    }
    const auto sounds = lengths(state, audio_lengths_, "audio_lengths_key", sound);
    const auto texts = lengths(state, text_lengths_, "text_lengths_key", text);
    std::vector<at::Tensor> sound_pairs;
    std::vector<at::Tensor> text_pairs;
    int64_t text_width = 2 * text.size(-1);
    for (int64_t i = 0; i + 1 < sound.size(0); i += 2) {
      sound_pairs.push_back(padded(pair(sound, sounds, i, {}), 2 * sound.size(-1)));
      text_pairs.push_back(pair(text, texts, i, separator_));
      // Two texts of full length have no room for the separator.
      text_width = std::max(text_width, text_pairs.back().size(-1));
    }
    for (auto& each : text_pairs) each = padded(each, text_width);
    state.set(audio_out_, at::stack(sound_pairs));
    state.set(text_out_, at::stack(text_pairs));
  }

 private:
  static std::vector<int64_t> lengths(const StepState& state, Slot slot, const char* key,
                                      const at::Tensor& of) {
    const std::vector<int64_t> found = host_values(state.tensor(slot));
    if (static_cast<int64_t>(found.size()) != of.size(0)) {
      throw Error(fmt::format("{}: expected a length for each example, found {} for {}", key,
                              found.size(), describe_tensor(of)));
    }
    for (const int64_t length : found) {
      if (length >= 0 && length <= of.size(-1)) continue;
      throw Error(
          fmt::format("{}: the length {} is not one of {}", key, length, describe_tensor(of)));
    }
    return found;
  }

  /// Concatenates examples i and i + 1.
  static at::Tensor pair(const at::Tensor& all, const std::vector<int64_t>& lengths, int64_t i,
                         std::optional<int64_t> separator) {
    at::Tensor first = all[i].narrow(-1, 0, lengths[static_cast<size_t>(i)]);
    const at::Tensor second = all[i + 1].narrow(-1, 0, lengths[static_cast<size_t>(i) + 1]);
    if (separator) first = at::constant_pad_nd(first, {0, 1}, *separator);
    return at::cat({first, second}, -1);
  }

  static at::Tensor padded(const at::Tensor& x, int64_t length) {
    return at::constant_pad_nd(x, {0, length - x.size(-1)});
  }

  Slot audio_, text_, audio_lengths_, text_lengths_, audio_out_, text_out_;
  int64_t separator_;
};

STEPOP_REGISTER_INJECTOR(
    mel_spectrogram, MelSpectrogramOf,
    {"The logarithm of the mel spectrogram, as Tacotron 2 has it; no gradient passes."});
STEPOP_REGISTER_INJECTOR(
    torch_mel_spectrogram, TorchMelSpectrogram,
    {"The logarithm of the mel spectrogram, as torchaudio has it; no gradient passes."});
STEPOP_REGISTER_INJECTOR(normalize_mel, NormalizeMel, {"Mels of mel_spectrogram to [-1, 1]."});
STEPOP_REGISTER_INJECTOR(frequency_bin_normalize, FrequencyBinNormalize,
                         {"(x - shift) / scale, for each bin of a spectrogram."});
STEPOP_REGISTER_INJECTOR(kmeans_quantizer, KmeansQuantizer,
                         {"The number of the nearest centroid."});
STEPOP_REGISTER_INJECTOR(mel_mask, MelMask,
                         {"Some bands of frequencies and of time made zero (SpecAugment)."});
STEPOP_REGISTER_INJECTOR(combine_mel, CombineMel,
                         {"Each two neighbours of the batch become one longer example."});

}  // namespace
}  // namespace stepop::extensible
