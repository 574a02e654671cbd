#include "runtime/core/pictures/webp.h"

#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "runtime/core/base/error.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/system/optional_library.h"

namespace stepop {
namespace {

/// The functions of libwebp's simple interface.
struct WebpLibrary {
  size_t (*encode)(const uint8_t*, int, int, int, float, uint8_t**);
  uint8_t* (*decode)(const uint8_t*, size_t, int*, int*);
  uint8_t* (*decode_with_alpha)(const uint8_t*, size_t, int*, int*);
  int (*info)(const uint8_t*, size_t, int*, int*);
  void (*release)(void*);

  WebpLibrary() {
    const OptionalLibrary library("libwebp.so.7",
                                  "WebP needs libwebp (Debian: apt-get install libwebp7)");
    library.find(encode, "WebPEncodeRGB");
    library.find(decode, "WebPDecodeRGB");
    library.find(decode_with_alpha, "WebPDecodeRGBA");
    library.find(info, "WebPGetInfo");
    library.find(release, "WebPFree");
  }
};

const WebpLibrary& webp_library() {
  static const WebpLibrary library;
  return library;
}

}  // namespace

void need_webp() { webp_library(); }

bool has_webp() {
  static const bool is_there = [] {
    try {
      webp_library();
    } catch (const Error&) {
      return false;
    }
    return true;
  }();
  return is_there;
}

Pixels decode_webp(std::string_view bytes, const std::string& name, bool has_alpha) {
  const auto fail = [&](const char* why) {
    return Error(fmt::format("{}: the WebP does not decode: {}", name, why));
  };
  if (!has_webp()) {
    throw Error(
        fmt::format("{}: is a WebP, which needs libwebp (Debian: apt-get install libwebp7)", name));
  }
  const WebpLibrary& library = webp_library();
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  int width = 0;
  int height = 0;
  if (library.info(data, bytes.size(), &width, &height) == 0) throw fail("its header is damaged");
  Pixels pixels{.height = static_cast<size_t>(height),
                .width = static_cast<size_t>(width),
                .channels = has_alpha ? size_t{4} : size_t{3},
                .bytes = {}};
  if (pixels.height * pixels.width > kMostPixels) {
    throw Error(fmt::format("{}: {}", name, too_many_pixels(pixels.width, pixels.height)));
  }
  using Bytes = std::unique_ptr<uint8_t, void (*)(void*)>;
  const auto decode = has_alpha ? library.decode_with_alpha : library.decode;
  const Bytes decoded(decode(data, bytes.size(), &width, &height), library.release);
  if (!decoded) throw fail("it is damaged, cut short, or a moving picture");
  pixels.bytes.assign(decoded.get(), decoded.get() + pixels.height * pixels.row_bytes());
  return pixels;
}

at::Tensor through_webp_bytes(const at::Tensor& picture, int quality) {
  constexpr int64_t kMostLength = 16383;
  check_picture(picture, "a WebP");
  const int64_t height = picture.size(0);
  const int64_t width = picture.size(1);
  if (picture.size(2) != 3 || height > kMostLength || width > kMostLength) {
    throw Error(
        fmt::format("a WebP has 3 channels and at most {0} x {0} pixels, found {1} and {2} "
                    "x {3}",
                    kMostLength, picture.size(2), width, height));
  }
  const WebpLibrary& library = webp_library();
  using Bytes = std::unique_ptr<uint8_t, void (*)(void*)>;
  uint8_t* encoded = nullptr;
  const at::Tensor pixels = picture.contiguous();
  const size_t size = library.encode(pixels.const_data_ptr<uint8_t>(), static_cast<int>(width),
                                     static_cast<int>(height), static_cast<int>(3 * width),
                                     static_cast<float>(quality), &encoded);
  const Bytes file(encoded, library.release);
  int decoded_width = 0;
  int decoded_height = 0;
  const Bytes decoded(
      size == 0 ? nullptr : library.decode(encoded, size, &decoded_width, &decoded_height),
      library.release);
  if (!decoded || decoded_width != width || decoded_height != height) {
    throw Error("libwebp cannot compress a picture");
  }
  at::Tensor result = at::empty_like(pixels);
  std::memcpy(result.mutable_data_ptr<uint8_t>(), decoded.get(), result.nbytes());
  return result;
}

}  // namespace stepop
