// Injectors over audio [..., T].
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "iterators/extensible/step/host_values.h"
#include "iterators/extensible/step/injector.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/datasets/resample.h"

namespace stepop::extensible {
namespace {

const at::Tensor& checked_sound(const at::Tensor& sound) {
  if (sound.dim() >= 2) return sound;
  throw Error(fmt::format("expected audio [B, C, T], found {}", describe_tensor(sound)));
}

/// Crops all examples of a batch to the same random range of samples.
class RandomAudioCrop : public Injector {
 public:
  struct Params : InOut {
    Port lengths;
    Port start;
    int64_t min_buffer = 0;
    std::optional<int64_t> size, least, most;

    void declare(Parameters& p) {
      InOut::declare(p, "[B, C, T]");
      p.add("lengths_key", lengths,
            "a key: the samples of each example, of which the fewest count");
      p.add("min_buffer", min_buffer, "samples at both ends that are left out", at_least(0));
      p.add("crop_start_key", start, "where the first sample's number goes");
      p.add("crop_size", size, "samples; or the next two", at_least(1));
      if (size) return;
      p.add("min_crop_size", least, "the smallest size that is drawn", at_least(1));
      p.add("max_crop_size", most, "the largest", at_least(static_cast<double>(least.value_or(1))));
    }
  };

  RandomAudioCrop(const Params& params, const Config& config, Ports& ports)
      : in_(ports.reads(params.in)),
        lengths_(ports.reads(params.lengths)),
        out_(ports.writes(params.out)),
        start_(ports.writes(params.start)),
        buffer_(params.min_buffer) {
    if (params.size) {
      least_ = most_ = *params.size;
      return;
    }
    if (!params.least) {
      throw config.error("crop_size",
                         "missing: a number of samples; or min_crop_size and "
                         "max_crop_size");
    }
    least_ = *params.least;
    most_ = params.most ? *params.most : config.get<int64_t>("max_crop_size");  // throws: missing
  }

  void run(StepState& state, const Iteration&) override {
    const at::Tensor& sound = checked_sound(state.tensor(in_));
    const int64_t size = least_ + draw(most_ - least_ + 1);
    const int64_t length = shortest(state, sound.size(-1));
    const int64_t margin = length - size - 2 * buffer_;
    const int64_t start = buffer_ + (margin > 0 ? draw(margin + 1) : 0);
    const int64_t begin = std::min(start, sound.size(-1));
    state.set(out_, sound.narrow(-1, begin, std::min(size, sound.size(-1) - begin)));
    if (start_) state.set(start_, static_cast<double>(begin));
  }

 private:
  /// The length of the shortest example; beyond, only the longer examples of the batch have sound.
  int64_t shortest(const StepState& state, int64_t samples) const {
    if (!lengths_) return samples;
    const at::Tensor& lengths = state.tensor(lengths_);
    if (lengths.numel() == 0) {
      throw Error(fmt::format("lengths_key: expected a length for each example, found {}",
                              describe_tensor(lengths)));
    }
    return std::min(samples, lengths.min().item<int64_t>());
  }

  Slot in_, lengths_, out_, start_;
  int64_t buffer_;
  int64_t least_ = 0;
  int64_t most_ = 0;
};

/// The first `clip_size` samples, and the same fraction of the codes.
class AudioClip : public Injector {
 public:
  struct Params : InOut {
    int64_t clip_size = 1;
    Port codes;
    Port codes_out;

    void declare(Parameters& p) {
      InOut::declare(p, "[B, C, T]");
      p.require("clip_size", clip_size, "samples", at_least(1));
      p.require("ctc_codes_key", codes, "the codes, [B, L]");
      p.require("ctc_out_key", codes_out, "where their part goes");
    }
  };

  AudioClip(const Params& params, Ports& ports)
      : in_(ports.reads(params.in)),
        codes_(ports.reads(params.codes)),
        out_(ports.writes(params.out)),
        codes_out_(ports.writes(params.codes_out)),
        size_(params.clip_size) {}

  void run(StepState& state, const Iteration&) override {
    const at::Tensor& sound = checked_sound(state.tensor(in_));
    const at::Tensor& codes = checked_sound(state.tensor(codes_));
    const int64_t samples = sound.size(-1);
    if (samples <= size_) {
      state.set(out_, sound);
      state.set(codes_out_, codes);
      return;
    }
    const double part = static_cast<double>(size_) / static_cast<double>(samples);
    const auto left = static_cast<int64_t>(part * static_cast<double>(codes.size(-1)));
    state.set(out_, sound.narrow(-1, 0, size_));
    state.set(codes_out_, codes.narrow(-1, 0, left));
  }

 private:
  Slot in_, codes_, out_, codes_out_;
  int64_t size_;
};

class AudioResample : public UnaryInjector {
 public:
  struct Params : InOut {
    int64_t from = 1;
    int64_t to = 1;

    void declare(Parameters& p) {
      InOut::declare(p, "[..., T]");
      p.require("input_sample_rate", from, "samples a second", at_least(1));
      p.require("output_sample_rate", to, "", at_least(1));
    }
  };

  AudioResample(const Params& params, const Config& config, Ports& ports)
      : UnaryInjector(params, ports), resampler_(make(params, config, ports.context().device)) {}
  at::Tensor compute(const at::Tensor& sound) override { return resampler_(sound); }

 private:
  static audio::Resampler make(const Params& params, const Config& config,
                               const c10::Device& device) {
    try {
      return {params.from, params.to, device};
    } catch (const Error& error) {
      throw config.error("output_sample_rate", error.what());
    }
  }

  audio::Resampler resampler_;
};

/// Crops all examples to a random length from a random place.
class RandomScale : public UnaryInjector {
 public:
  struct Params : InOut {
    int64_t min_samples = 1;

    void declare(Parameters& p) {
      InOut::declare(p, "[B, C, T]")
          .require("min_samples", min_samples, "of the part, at least", at_least(1));
    }
  };

  RandomScale(const Params& params, Ports& ports)
      : UnaryInjector(params, ports), least_(params.min_samples) {}
  at::Tensor compute(const at::Tensor& x) override {
    const at::Tensor& sound = checked_sound(x);
    const int64_t samples = sound.size(-1);
    if (samples <= least_) return sound;
    const int64_t size = least_ + draw(samples - least_ + 1);
    return sound.narrow(-1, draw(samples - size + 1), size);
  }

 private:
  int64_t least_;
};

/// Neighbouring samples become channels: [B, C, T] -> [B, C n, T / n].
class AudioUnshuffle : public UnaryInjector {
 public:
  struct Params : InOut {
    int64_t compression = 1;

    void declare(Parameters& p) {
      InOut::declare(p, "[B, C, T]", "[B, C compression, T / compression]")
          .require("compression", compression, "samples that become channels", at_least(1));
    }
  };

  AudioUnshuffle(const Params& params, Ports& ports)
      : UnaryInjector(params, ports), factor_(params.compression) {}
  at::Tensor compute(const at::Tensor& sound) override {
    if (sound.dim() != 3 || sound.size(2) % factor_ != 0) {
      throw Error(
          fmt::format("expected audio [B, C, T] of a multiple of {} samples, found {}; "
                      "`type: pad, multiple: {}` makes it one",
                      factor_, describe_tensor(sound), factor_));
    }
    const int64_t steps = sound.size(2) / factor_;
    return sound.reshape({sound.size(0), sound.size(1), steps, factor_})
        .transpose(2, 3)
        .reshape({sound.size(0), sound.size(1) * factor_, steps});
  }

 private:
  int64_t factor_;
};

STEPOP_REGISTER_INJECTOR(
    random_audio_crop, RandomAudioCrop,
    {"A part of the audio, of a random place and size, the same for the whole batch."});
STEPOP_REGISTER_INJECTOR(audio_clip, AudioClip,
                         {"The first samples, and as large a part of the codes."});
STEPOP_REGISTER_INJECTOR(audio_resample, AudioResample, {"Audio at another sampling rate."});
STEPOP_REGISTER_INJECTOR(random_scale, RandomScale,
                         {"A part of the audio, of a random length from a random place."});
STEPOP_REGISTER_INJECTOR(audio_unshuffle, AudioUnshuffle,
                         {"Neighbouring samples become channels."});

}  // namespace
}  // namespace stepop::extensible
