// Injectors over audio [..., T].
#include <fmt/format.h>

#include <algorithm>
#include <string>

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
  RandomAudioCrop(const Config& params, Ports& ports)
      : in_(ports.reads(params, "in")),
        lengths_(ports.reads_optional(params, "lengths_key")),
        out_(ports.writes(params, "out")),
        buffer_(params.get_at_least("min_buffer", 0, 0)) {
    if (params.has("crop_start_key")) start_ = ports.writes(params, "crop_start_key");
    if (params.has("crop_size")) {
      least_ = most_ = params.get_at_least("crop_size", 1);
      return;
    }
    if (!params.has("min_crop_size")) {
      throw params.error("crop_size",
                         "missing: a number of samples; or min_crop_size and "
                         "max_crop_size");
    }
    least_ = params.get_at_least("min_crop_size", 1);
    most_ = params.get_at_least("max_crop_size", least_);
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
  AudioClip(const Config& params, Ports& ports)
      : in_(ports.reads(params, "in")),
        codes_(ports.reads(params, "ctc_codes_key")),
        out_(ports.writes(params, "out")),
        codes_out_(ports.writes(params, "ctc_out_key")),
        size_(params.get_at_least("clip_size", 1)) {}

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
  AudioResample(const Config& params, Ports& ports)
      : UnaryInjector(params, ports), resampler_(make(params, ports.context().device)) {}
  at::Tensor compute(const at::Tensor& sound) override { return resampler_(sound); }

 private:
  static audio::Resampler make(const Config& params, const c10::Device& device) {
    const int64_t from = params.get_at_least("input_sample_rate", 1);
    const int64_t to = params.get_at_least("output_sample_rate", 1);
    try {
      return {from, to, device};
    } catch (const Error& error) {
      throw params.error("output_sample_rate", error.what());
    }
  }

  audio::Resampler resampler_;
};

/// Crops all examples to a random length from a random place.
class RandomScale : public UnaryInjector {
 public:
  RandomScale(const Config& params, Ports& ports)
      : UnaryInjector(params, ports), least_(params.get_at_least("min_samples", 1)) {}
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
  AudioUnshuffle(const Config& params, Ports& ports)
      : UnaryInjector(params, ports), factor_(params.get_at_least("compression", 1)) {}
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
    {"A part of the audio, of a random place and size, the same for the whole batch.",
     {{"in", "", "[B, C, T]"},
      {"out", "", ""},
      {"crop_size", "none", "samples; or the next two"},
      {"min_crop_size", "none", "the smallest size that is drawn"},
      {"max_crop_size", "none", "the largest"},
      {"min_buffer", "0", "samples at both ends that are left out"},
      {"lengths_key", "none", "a key: the samples of each example, of which the fewest count"},
      {"crop_start_key", "none", "where the first sample's number goes"}}});
STEPOP_REGISTER_INJECTOR(audio_clip, AudioClip,
                         {"The first samples, and as large a part of the codes.",
                          {{"in", "", "[B, C, T]"},
                           {"out", "", ""},
                           {"clip_size", "", "samples"},
                           {"ctc_codes_key", "", "the codes, [B, L]"},
                           {"ctc_out_key", "", "where their part goes"}}});
STEPOP_REGISTER_INJECTOR(audio_resample, AudioResample,
                         {"Audio at another sampling rate.",
                          {{"in", "", "[..., T]"},
                           {"out", "", ""},
                           {"input_sample_rate", "", "samples a second"},
                           {"output_sample_rate", "", ""}}});
STEPOP_REGISTER_INJECTOR(
    random_scale, RandomScale,
    {"A part of the audio, of a random length from a random place.",
     {{"in", "", "[B, C, T]"}, {"out", "", ""}, {"min_samples", "", "of the part, at least"}}});
STEPOP_REGISTER_INJECTOR(audio_unshuffle, AudioUnshuffle,
                         {"Neighbouring samples become channels.",
                          {{"in", "", "[B, C, T]"},
                           {"out", "", "[B, C compression, T / compression]"},
                           {"compression", "", "samples that become channels"}}});

}  // namespace
}  // namespace stepop::extensible
