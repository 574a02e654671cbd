// Closed forms; what librosa and torchaudio give is compared in
// tests/iterators/extensible/values_test.cpp.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "iterators/audio/mel.h"
#include "runtime/core/base/error.h"
#include "tests/message_of.h"

namespace stepop {
namespace audio_test {

using audio::MelScale;

TEST_CASE("hertz become mels by both scales, and back") {
  CHECK(audio::hertz_to_mel(1000, MelScale::kSlaney) == doctest::Approx(15));
  CHECK(audio::hertz_to_mel(200, MelScale::kSlaney) == doctest::Approx(3));
  CHECK(audio::hertz_to_mel(6400, MelScale::kSlaney) == doctest::Approx(15 + 27));
  CHECK(audio::hertz_to_mel(700, MelScale::kHtk) == doctest::Approx(2595 * std::log10(2.0)));
  for (const MelScale scale : {MelScale::kHtk, MelScale::kSlaney}) {
    for (const double hertz : {0.0, 440.0, 999.0, 1001.0, 8000.0}) {
      CHECK(audio::mel_to_hertz(audio::hertz_to_mel(hertz, scale), scale) ==
            doctest::Approx(hertz));
    }
  }
}

TEST_CASE("each mel filter is a triangle of area 1") {
  audio::MelBank bank;
  bank.bins = 4097;
  bank.mels = 20;
  for (const MelScale scale : {MelScale::kHtk, MelScale::kSlaney}) {
    bank.scale = scale;
    const at::Tensor area = audio::mel_filters(bank).sum(1) * (22050.0 / 2 / 4096);
    CHECK(at::allclose(area, at::ones({20}), 0.01, 0.01));
  }
}

TEST_CASE("the loudest mel of a tone is the one around it, whatever the window") {
  audio::MelSpectrogram::Options options;
  options.window = 512;
  const audio::MelSpectrogram mel(options, c10::kCPU);
  const at::Tensor seconds = at::arange(8000, at::kFloat) / 22050;
  for (const double hertz : {300.0, 2000.0, 6000.0}) {
    const at::Tensor tone = at::sin(seconds * (2 * std::numbers::pi * hertz)).unsqueeze(0);
    const at::Tensor made = mel(tone);
    CHECK(made.sizes() == at::IntArrayRef{1, 80, 8000 / 256 + 1});
    const double per_mel = audio::hertz_to_mel(8000, MelScale::kSlaney) / 81;
    const double nearest = audio::hertz_to_mel(hertz, MelScale::kSlaney) / per_mel - 1;
    const auto loudest = made[0].select(1, 15).argmax().item<int64_t>();
    CHECK(std::abs(static_cast<double>(loudest) - nearest) <= 1);
  }
  const double floor = mel(at::zeros({1, 2000})).max().item<double>();
  CHECK(floor == doctest::Approx(std::log(1e-5)));
  CHECK(message_of([&] {
          mel(at::zeros({1, 512}));
        }) == "expected audio [B, T] of more than 512 samples, found float32 [1, 512]");
}

}  // namespace audio_test
}  // namespace stepop
