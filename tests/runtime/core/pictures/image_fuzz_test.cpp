// Whatever the bytes of an image are, it decodes or is refused with an Error, within time and
// memory.
#include <doctest/doctest.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/pictures/image_file.h"
#include "tests/fuzz.h"
#include "tests/places.h"

namespace stepop {
namespace image_fuzz_test {

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// Gives each chunk of a PNG the check sum that its content has, so that what lies behind that
/// check is reached.
void seal_png(std::string& bytes) {
  for (size_t at = 8; at + 12 <= bytes.size();) {
    const size_t length = big_endian(bytes, at);
    if (length > bytes.size() - at - 12) return;
    const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(bytes.data() + at + 4),
                            static_cast<uInt>(length + 4));
    for (size_t i = 0; i < 4; ++i) {
      bytes[at + 8 + length + i] = static_cast<char>(sum >> (24 - 8 * i));
    }
    at += length + 12;
  }
}

std::vector<std::string> images(const std::string& extension) {
  std::vector<std::string> all;
  for (const auto& entry :
       std::filesystem::directory_iterator(STEPOP_SOURCE_DIR "/tests/data/images")) {
    if (entry.path().extension() != extension) continue;
    all.push_back(read_plain_or_gzip(entry.path().string()));
  }
  std::sort(all.begin(), all.end());
  return all;
}

void fuzz(const char* kind, const std::vector<std::string>& seeds, std::vector<std::string> words,
          const std::vector<std::string>& focus, bool is_sealed) {
  const uint64_t seed = fuzz_seed();
  const uint64_t count = fuzz_count(1000);
  CAPTURE(seed);
  FuzzWatch watch(kind, seed);
  uint64_t are_read = 0;
  for (uint64_t i = fuzz_first(); i < fuzz_first() + count; ++i) {
    CAPTURE(i);
    ByteMutator mutator(seed * 1'000'003 + i, words, focus);
    std::string bytes = mutator.mutate(seeds[mutator.below(seeds.size())]);
    if (is_sealed && mutator.below(4) > 0) seal_png(bytes);
    watch.run(i, [&] {
      try {
        const at::Tensor image = decode_image(bytes, "the file", mutator.below(2) == 0 ? 3 : 0);
        REQUIRE(image.dim() == 3);
        REQUIRE(std::abs(image.flatten()[-1].item<float>()) <= 1);
        ++are_read;
      } catch (const Error& error) {
        REQUIRE(std::string(error.what()).starts_with("the file: "));
      }
    });
  }
  CHECK(are_read >= count / 100);  // or the mutations do not get far
}

TEST_CASE("mutated PNGs decode or are refused") {
  fuzz("PNG", images(".png"), {"IHDR", "PLTE", "IDAT", "IEND", "tRNS", "zTXt", "iCCP", "sPLT"},
       {"IHDR", "PLTE", "tRNS"}, true);
}

TEST_CASE("mutated JPEGs decode or are refused") {
  fuzz("JPEG", images(".jpg"),
       {"\xff\xd8", "\xff\xc0", "\xff\xc2", "\xff\xc4", "\xff\xda", "\xff\xdb", "\xff\xd9",
        "\xff\xdd"},
       {"\xff\xc0", "\xff\xc2", "\xff\xda", "\xff\xc4"}, false);
}

TEST_CASE("a JPEG whose scans go over a large image again and again is refused") {
  std::string bytes =
      read_plain_or_gzip(STEPOP_SOURCE_DIR "/tests/data/images/rgb-progressive.jpg");
  const size_t scan = bytes.find("\xff\xda");
  const size_t end = bytes.find("\xff\xc4", scan);
  REQUIRE(scan != std::string::npos);
  REQUIRE(end != std::string::npos);
  std::string many = bytes.substr(0, scan);
  for (int i = 0; i < 600; ++i) many += bytes.substr(scan, end - scan);
  std::string message = "no error";
  try {
    decode_image(many + bytes.substr(end), "a.jpg");
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK(message == "a.jpg: the JPEG does not decode: it has more than 500 scans");
}

}  // namespace image_fuzz_test
}  // namespace stepop
