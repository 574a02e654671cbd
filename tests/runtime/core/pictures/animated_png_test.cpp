#include "runtime/core/pictures/animated_png.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace animated_png_test {

at::Tensor frame(int64_t value, int64_t channels) {
  return at::full({3, 5, channels}, value, at::kByte);
}

TEST_CASE("pillow reads the frames of an animated PNG, their time, and that it has no end") {
  const ScratchFolder folder;
  folder.write("grey.png", encode_animated_png({frame(10, 1), frame(200, 1), frame(30, 1)}, 4));
  // One grey frame among those in colour.
  folder.write("colour.png", encode_animated_png({frame(10, 3), frame(200, 1)}, 25));
  const std::string script = R"(
import sys
from PIL import Image
for path in sys.argv[1:]:
    image = Image.open(path)
    print(image.size, image.mode, image.n_frames, image.info["loop"])
    for i in range(image.n_frames):
        image.seek(i)
        print(image.info["duration"], image.getpixel((0, 0)), image.getpixel((4, 2)))
)";
  CHECK(run_python(script, {folder.path("grey.png"), folder.path("colour.png")}) ==
        "(5, 3) L 3 0\n250.0 10 10\n250.0 200 200\n250.0 30 30\n"
        "(5, 3) RGB 2 0\n40.0 (10, 10, 10) (10, 10, 10)\n"
        "40.0 (200, 200, 200) (200, 200, 200)\n");
}

TEST_CASE("a reader of PNGs sees the first frame") {
  const std::string bytes = encode_animated_png({frame(255, 1), frame(0, 1)}, 8);
  const at::Tensor image = decode_image(bytes, "video.png");
  CHECK(describe_tensor(image) == "float32 [1, 3, 5]");
  CHECK(image.min().item<float>() == 1);
}

TEST_CASE("frames are pictures of one size") {
  CHECK(message_of([] { encode_animated_png({}, 8); }) ==
        "an animated PNG needs at least one frame");
  CHECK(message_of([] {
          encode_animated_png({frame(0, 1), at::zeros({3, 4, 1}, at::kByte)}, 8);
        }) == "frames of an animated PNG have one size, found uint8 [3, 5, 1] and uint8 [3, 4, 1]");
  CHECK(message_of([] {
          encode_animated_png({at::zeros({3, 4, 1})}, 8);
        }).starts_with("a frame of an animated PNG is made of a uint8 tensor [H, W, C]"));
}

}  // namespace animated_png_test
}  // namespace stepop
