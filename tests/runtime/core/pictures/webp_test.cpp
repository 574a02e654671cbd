#include "runtime/core/pictures/webp.h"

#include <doctest/doctest.h>

#include <string>

#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/pictures/image_file.h"
#include "tests/message_of.h"
#include "tests/places.h"

namespace stepop {
namespace webp_test {

const std::string kFolder = STEPOP_SOURCE_DIR "/tests/data/images/";

TEST_CASE("a WebP without losses has the pixels of the PNG that it was made of") {
  if (!has_webp()) return;
  for (const int64_t channels : {0, 1, 3}) {
    CHECK(read_image(kFolder + "rgb-lossless.webp", channels)
              .equal(read_image(kFolder + "rgb-8.png", channels)));
  }
  for (const int64_t channels : {3, 4}) {
    CHECK(read_image(kFolder + "rgb-alpha-lossless.webp", channels)
              .equal(read_image(kFolder + "rgb-alpha-8.png", channels)));
  }
  const at::Tensor opaque = read_image(kFolder + "rgb-lossless.webp", 4);
  CHECK((opaque[3] == 1).all().item<bool>());
  CHECK(read_stored_image(kFolder + "rgb-lossless.webp")
            .equal(read_stored_image(kFolder + "rgb-8.png")));
}

TEST_CASE("a WebP that is damaged is named") {
  if (!has_webp()) return;
  const std::string bytes = read_plain_or_gzip(kFolder + "rgb-lossless.webp");
  CHECK(message_of([&] { decode_image(bytes.substr(0, 60), "a.webp"); }) ==
        "a.webp: the WebP does not decode: it is damaged, cut short, or a moving picture");
  CHECK(message_of([&] { decode_image(bytes.substr(0, 14), "a.webp"); }) ==
        "a.webp: the WebP does not decode: its header is damaged");
}

}  // namespace webp_test
}  // namespace stepop
