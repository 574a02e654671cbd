#include "runtime/core/formats/wav_file.h"

#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace wav_file_test {

TEST_CASE("Python's module wave reads the samples of a .wav file, each channel by itself") {
  const ScratchFolder folder;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor sound =
      at::tensor({0.0, 0.5, -1.0, 1.5, 1.0 / 32767, -0.25, nan, INFINITY, -INFINITY, -0.00002})
          .view({2, 5});
  const WavFile wav = encode_wav(sound, 22050);
  CHECK(wav.bytes.size() == 44 + 2 * 10);
  const std::string read = run_python(
      "import struct, sys, wave\n"
      "w = wave.open(sys.argv[1])\n"
      "print(w.getnchannels(), w.getsampwidth(), w.getframerate(), w.getnframes(),\n"
      "      struct.unpack('<10h', w.readframes(99)))\n",
      {folder.write("a.wav", wav.bytes)});
  CHECK(read == "2 2 22050 5 (0, -8192, 16384, 0, -32767, 32767, 32767, -32767, 1, -1)\n");
  CHECK(wav.channels == 2);
  CHECK(wav.samples == 5);
  CHECK(wav.rate == 22050);
}

}  // namespace wav_file_test
}  // namespace stepop
