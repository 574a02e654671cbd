// Closed forms; what torchaudio gives is compared in tests/iterators/extensible/values_test.cpp.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <numbers>

#include "runtime/data/datasets/resample.h"
#include "tests/message_of.h"

namespace stepop {
namespace resample_test {

using audio::Resampler;

TEST_CASE("a tone at another sampling rate is the same tone, of any shape of audio") {
  const auto tone = [](int64_t samples, double rate) {
    return at::sin(at::arange(samples, at::kDouble) * (2 * std::numbers::pi * 440 / rate))
        .to(at::kFloat);
  };
  const Resampler up(16000, 24000, c10::kCPU);
  const at::Tensor made = up(tone(1601, 16000).expand({2, 3, 1601}));
  CHECK(made.sizes() == at::IntArrayRef{2, 3, 2402});
  CHECK(at::allclose(made[1][2].narrow(0, 100, 2200), tone(2402, 24000).narrow(0, 100, 2200), 1e-2,
                     5e-3));
  const Resampler down(22050, 8000, c10::kCPU);
  const at::Tensor lower = down(tone(2205, 22050));
  CHECK(lower.sizes() == at::IntArrayRef{800});
  CHECK(at::allclose(lower.narrow(0, 50, 700), tone(800, 8000).narrow(0, 50, 700), 1e-2, 5e-3));
  const at::Tensor x = tone(10, 100);
  CHECK(at::equal(Resampler(48000, 48000, c10::kCPU)(x), x));
  CHECK(up(at::zeros({2, 0})).sizes() == at::IntArrayRef{2, 0});
}

TEST_CASE("rates without a common factor, and audio in whole numbers, are refused") {
  CHECK(message_of([] { Resampler(44101, 48000, c10::kCPU); }) ==
        "44101 and 48000 have so small a common factor that this takes 48000 filters of 44115 "
        "numbers; choose rates such as 22050 and 24000");
  CHECK(message_of([] {
          Resampler(2, 1, c10::kCPU)(at::zeros({1, 8}, at::kShort));
        }) == "expected audio as floating-point numbers, [..., T], found int16 [1, 8]");
}

}  // namespace resample_test
}  // namespace stepop
