#include "runtime/core/pictures/image_file.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <utility>

#include <cmath>
#include <fstream>
#include <sstream>

#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace image_file_test {

const std::string kFolder = STEPOP_SOURCE_DIR "/tests/data/images/";

/// A line of expected.txt, which pillow's results are written in.
struct Expected {
  std::string name;
  double largest = 0;
  std::vector<int64_t> shape = {0, 0, 0};
  std::vector<double> values;  ///< 0 .. largest, [C, H, W]
};

std::vector<Expected> read_expected() {
  std::vector<Expected> all;
  std::ifstream file(kFolder + "expected.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Expected& one = all.emplace_back();
    words >> one.name >> one.largest >> one.shape[0] >> one.shape[1] >> one.shape[2];
    for (double value = 0; words >> value;) one.values.push_back(value);
  }
  return all;
}

/// The largest difference of two images, in steps of the stored values.
double difference(const at::Tensor& image, const Expected& expected) {
  double most = 0;
  const auto values = values_of<float>(image);
  for (size_t i = 0; i < values.size(); ++i) {
    const double stored = (static_cast<double>(values[i]) + 1) / 2 * expected.largest;
    most = std::max(most, std::abs(stored - expected.values.at(i)));
  }
  return most;
}

TEST_CASE("every kind of PNG is read as pillow reads it, JPEG within a rounding step") {
  int count = 0;
  for (const auto& expected : read_expected()) {
    if (expected.name.find('@') != std::string::npos) continue;
    CAPTURE(expected.name);
    const at::Tensor image = read_image(kFolder + expected.name);
    REQUIRE(image.sizes().vec() == expected.shape);
    CHECK(image.is_floating_point());
    CHECK(image.is_contiguous());
    const bool is_jpeg = expected.name.ends_with(".jpg");
    CHECK(difference(image, expected) < (is_jpeg ? 1.01 : 0.01));
    ++count;
  }
  CHECK(count == 28);
}

TEST_CASE("the least stored value is -1 and the largest is 1") {
  CHECK(from_byte(0) == -1.0F);
  CHECK(from_byte(255) == 1.0F);
  for (int value = 0; value < 256; ++value) {
    CHECK(to_byte(from_byte(static_cast<uint8_t>(value))) == value);
  }
  const auto values = values_of<float>(read_image(kFolder + "grey-1.png"));
  for (const float value : values) CHECK(std::abs(value) == 1.0F);
}

TEST_CASE("colour becomes grey with pillow's weights, grey is repeated") {
  for (const auto& expected : read_expected()) {
    if (expected.name != "rgb.jpg@grey") continue;
    const at::Tensor grey = read_image(kFolder + "rgb.jpg", 1);
    REQUIRE(grey.sizes().vec() == expected.shape);
    CHECK(difference(grey, expected) < 1.51);  // pillow rounds down
  }
  const at::Tensor grey = read_image(kFolder + "grey-16.png");
  const at::Tensor colour = read_image(kFolder + "grey-16.png", 3);
  CHECK(describe_tensor(colour) == "float32 [3, 5, 7]");
  for (int c = 0; c < 3; ++c) CHECK(colour[c].equal(grey[0]));
  CHECK(message_of([] { read_image(kFolder + "grey-8.png", 2); }) ==
        kFolder +
            "grey-8.png: an image is read with 1, 3 or 4 channels, or 0 for as many as it has; "
            "asked for were 2");
}

TEST_CASE("a fourth channel is alpha, and 1 where there is none") {
  const auto first_row = [](const std::string& name) {
    const at::Tensor image = read_image(kFolder + name, 4);
    REQUIRE(image.size(0) == 4);
    CHECK(image.narrow(0, 0, 3).equal(read_image(kFolder + name, 3)));
    std::vector<int> bytes;
    for (const float value : values_of<float>(image[3][0])) bytes.push_back(to_byte(value));
    return bytes;
  };
  // As written by make_images.py.
  CHECK(first_row("rgb-alpha-8.png") == std::vector<int>{136, 208, 79, 6, 217, 56, 24});
  CHECK(first_row("grey-alpha-8.png") == std::vector<int>{140, 117, 66, 91, 167, 203, 158});
  CHECK(first_row("rgb-transparent.png") == std::vector<int>{0, 255, 255, 255, 255, 255, 255});
  CHECK(first_row("palette-alpha-2.png") == std::vector<int>{255, 0, 128, 255, 255, 128, 255});
  CHECK(first_row("grey-8.png") == std::vector<int>(7, 255));
  CHECK(first_row("rgb.jpg").at(0) == 255);
}

TEST_CASE("an image as it is stored has the same values, in bytes where it has 8 bits") {
  for (const char* name : {"rgb-8.png", "grey-8.png", "rgb.jpg", "palette-4.png"}) {
    CAPTURE(name);
    const at::Tensor stored = read_stored_image(kFolder + name);
    CHECK((stored.scalar_type() == at::kByte));
    CHECK(from_stored_image(stored).equal(read_image(kFolder + name)));
    CHECK(from_stored_image(stored).is_contiguous());
  }
  CHECK(read_stored_image(kFolder + "rgb-16.png").equal(read_image(kFolder + "rgb-16.png")));
  CHECK(read_stored_image(kFolder + "rgb-8.png", 1).equal(read_image(kFolder + "rgb-8.png", 1)));
  CHECK(read_stored_image(kFolder + "grey-8.png", 4).equal(read_image(kFolder + "grey-8.png", 4)));
}

TEST_CASE("the content tells the kind of image, not the name") {
  const ScratchFolder folder;
  const std::string path = folder.write("a.png", read_plain_or_gzip(kFolder + "rgb.jpg"));
  CHECK(read_image(path).equal(read_image(kFolder + "rgb.jpg")));
}

TEST_CASE("an image that does not decode is reported with its path") {
  const ScratchFolder folder;
  const auto message_for = [&](const std::string& content) {
    const std::string path = folder.write("a", content);
    const std::string message = message_of([&] { read_image(path); });
    return message.starts_with(path + ": ") ? message.substr(path.size() + 2) : message;
  };
  const std::string png = read_plain_or_gzip(kFolder + "rgb-8.png");
  const std::string jpeg = read_plain_or_gzip(kFolder + "rgb.jpg");
  CHECK(message_for("") == "expected a PNG, JPEG or WebP, the file is empty");
  CHECK(message_for("GIF89a") == "expected a PNG, JPEG or WebP, the file begins with 47 49 46 38");
  CHECK(message_for(png.substr(0, 20)) == "the PNG does not decode: the file ends too early");
  CHECK(message_for(png.substr(0, png.size() - 30)) ==
        "the PNG does not decode: the file ends too early");
  std::string damaged = png;
  damaged[50] = static_cast<char>(damaged[50] ^ 1);
  CHECK(message_for(damaged) == "the PNG does not decode: IDAT: incorrect data check");
  damaged = png;
  damaged[png.size() - 13] = 0;  // the last byte of IDAT's check sum
  CHECK(message_for(damaged) == "the PNG does not decode: IDAT: CRC error");
  CHECK(message_for(jpeg.substr(0, jpeg.size() - 40)) ==
        "the JPEG does not decode: Premature end of JPEG file");
  CHECK(message_for(jpeg.substr(0, 3)) == "the JPEG does not decode: Premature end of JPEG file");
  CHECK(message_of([&] { read_image(folder.path("none.png")); }) ==
        "cannot read " + folder.path("none.png") + ": No such file or directory");
}

TEST_CASE("a PNG whose header promises too much asks for no memory") {
  std::string png = read_plain_or_gzip(kFolder + "rgb-8.png");
  png.replace(16, 8, std::string("\x00\x0f\x00\x00\x00\x0f\x00\x00", 8));  // 983,040 squared
  png.replace(29, 4, "\x1f\x5d\x66\x98");
  const std::string message = message_of([&] { decode_image(png, "a.png"); });
  CHECK(message ==
        "a.png: the PNG does not decode: the file is too short for the size in its header");
}

TEST_CASE("a JPEG whose header promises too much asks for no memory") {
  const std::string jpeg = read_plain_or_gzip(kFolder + "rgb.jpg");
  const auto with_size = [&](int height, int width) {
    std::string damaged = jpeg;
    const size_t frame = damaged.find("\xff\xc0");  // marker, length, precision, height, width
    REQUIRE(frame != std::string::npos);
    for (const auto& [at, value] : {std::pair{frame + 5, height}, {frame + 7, width}}) {
      damaged[at] = static_cast<char>(value >> 8);
      damaged[at + 1] = static_cast<char>(value & 0xff);
    }
    return damaged;
  };
  CHECK(message_of([&] { decode_image(with_size(65500, 65500), "a.jpg"); }) ==
        "a.jpg: the JPEG does not decode: the file is too short for the size in its header");
  CHECK(message_of([&] { decode_image(with_size(10000, 10001) + std::string(600'000, 0), "a"); }) ==
        "a: it has 10001 x 10000 pixels, and at most 100,000,000 are read: make it smaller, or cut "
        "it");
}

TEST_CASE("no cut and no flipped byte of an image does harm") {
  for (const char* name : {"rgb-interlaced.png", "palette-alpha-4.png", "rgb-progressive.jpg"}) {
    const std::string content = read_plain_or_gzip(kFolder + name);
    for (size_t i = 0; i < content.size(); ++i) {
      CAPTURE(name);
      CAPTURE(i);
      const std::string cut = content.substr(0, i);
      const bool is_jpeg_end = cut.starts_with("\xff") && i + 2 >= content.size();
      if (!is_jpeg_end) CHECK(message_of([&] { decode_image(cut, "a"); }) != "no error");
      std::string damaged = content;
      damaged[i] = static_cast<char>(~damaged[i]);
      CHECK(message_of([&] { decode_image(damaged, "a"); }) != "");
    }
  }
}

TEST_CASE("an encoded PNG decodes to the same pixels") {
  for (const int64_t channels : {1, 3}) {
    const at::Tensor picture =
        at::arange(6 * 5 * channels).mul(7).remainder(256).to(at::kByte).view({6, 5, channels});
    const at::Tensor image = decode_image(encode_png(picture), "a", channels);
    const auto expected = values_of<uint8_t>(picture.permute({2, 0, 1}));
    const auto values = values_of<float>(image);
    REQUIRE(values.size() == expected.size());
    for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == from_byte(expected[i]));
  }
}

TEST_CASE("an encoded JPEG decodes to nearly the same pixels, in the quality that is asked for") {
  const at::Tensor ramp = at::arange(64).mul(4).view({1, 64}).expand({48, 64});
  for (const int64_t channels : {1, 3}) {
    const at::Tensor picture =
        ramp.unsqueeze(2).expand({48, 64, channels}).to(at::kByte).contiguous();
    const auto error_at = [&](int quality) {
      const at::Tensor image = decode_image(encode_jpeg(picture, quality), "a");
      REQUIRE(image.sizes().vec() == std::vector<int64_t>{channels, 48, 64});
      const at::Tensor exact = decode_image(encode_png(picture), "a");
      return (image - exact).abs().max().item<double>() * 127.5;
    };
    CHECK(error_at(95) < 4);
    CHECK(error_at(95) < error_at(5));
    CHECK(encode_jpeg(picture, 5).size() < encode_jpeg(picture, 95).size());
  }
}

TEST_CASE("a picture of many pixels as JPEG is read by pillow") {
  const ScratchFolder folder;
  const at::Tensor picture =
      at::arange(300).view({300, 1, 1}).add(at::arange(500).view({1, 500, 1})).remainder(256);
  folder.write("a.jpg", encode_jpeg(picture.expand({300, 500, 3}).to(at::kByte).contiguous(), 90));
  CHECK(run_python("import sys\nfrom PIL import Image\nimage = Image.open(sys.argv[1])\n"
                   "image.load()\nprint(image.format, image.size, image.mode)",
                   {folder / "a.jpg"}) == "JPEG (500, 300) RGB\n");
}

TEST_CASE("the head of an image says what it is, whatever follows") {
  const std::string png = encode_png(at::zeros({20, 30, 1}, at::kByte));
  const std::string jpeg = encode_jpeg(at::zeros({20, 30, 3}, at::kByte), 90);
  CHECK_FALSE(image_head(png).value().is_jpeg);
  CHECK(image_head(png)->height == 20);
  CHECK(image_head(png)->width == 30);
  CHECK(image_head(png)->channels == 1);
  CHECK(image_head(jpeg).value().is_jpeg);
  CHECK(image_head(jpeg)->height == 20);
  CHECK(image_head(jpeg)->width == 30);
  CHECK(image_head(jpeg)->channels == 3);
  CHECK(image_ending(png) == std::string(".png"));
  CHECK(image_ending(jpeg) == std::string(".jpg"));
  for (const std::string& bytes : {std::string(), std::string("GIF89a"), png.substr(0, 12)}) {
    CHECK_FALSE(image_head(bytes));
  }
  for (size_t size = 0; size < 100; ++size) image_head(jpeg.substr(0, size));
  CHECK(image_head("\xff\xd8\xff\xe0" + std::string(100, '\0')) == std::nullopt);
}

TEST_CASE("what no JPEG can be made of is named") {
  CHECK(message_of([] {
          encode_jpeg(at::zeros({4, 4, 3}), 90);
        }) ==
        "a JPEG is made of a uint8 tensor [H, W, C] on the CPU with C = 1 or 3, found float32 [4, "
        "4, 3]");
  CHECK(message_of([] {
          encode_jpeg(at::zeros({1, 65501, 1}, at::kByte), 90);
        }) ==
        "the JPEG of uint8 [1, 65501, 1] cannot be made: Maximum supported image dimension is "
        "65500 pixels");
}

TEST_CASE("what no PNG can be made of is named") {
  CHECK(message_of([] {
          encode_png(at::zeros({4, 4, 2}, at::kByte));
        }) ==
        "a PNG is made of a uint8 tensor [H, W, C] on the CPU with C = 1 or 3, found uint8 [4, 4, "
        "2]");
  CHECK(message_of([] {
          encode_png(at::zeros({4, 4, 3}));
        }) ==
        "a PNG is made of a uint8 tensor [H, W, C] on the CPU with C = 1 or 3, found float32 [4, "
        "4, 3]");
  CHECK(message_of([] { encode_png({}); }) ==
        "a PNG is made of a uint8 tensor [H, W, C] on the CPU with C = 1 or 3, found an undefined "
        "tensor");
}

TEST_CASE("a mask is the numbers that a PNG stores, as Pillow reads palettes") {
  const auto mask_of = [](const std::string& name) {
    return read_mask(STEPOP_SOURCE_DIR "/tests/data/images/" + name);
  };
  // The sums of numpy.array(Image.open(...)); Pillow spreads grey of 2 and 4 bits over 0 to 255.
  for (const auto& [name, sum] :
       std::vector<std::pair<std::string, int64_t>>{{"palette-1.png", 18},
                                                    {"palette-2.png", 63},
                                                    {"palette-4.png", 231},
                                                    {"palette-8.png", 4935},
                                                    {"palette-alpha-4.png", 231},
                                                    {"grey-1.png", 20},
                                                    {"grey-2.png", 5015 / 85},
                                                    {"grey-4.png", 4301 / 17},
                                                    {"grey-8.png", 4435},
                                                    {"grey-16.png", 1120837}}) {
    CAPTURE(name);
    const at::Tensor mask = mask_of(name);
    CHECK((mask.scalar_type() == at::kLong));
    CHECK(mask.sizes() == at::IntArrayRef{5, 7});
    CHECK(mask.sum().item<int64_t>() == sum);
  }
  CHECK(mask_of("palette-4.png")
            .flatten()
            .slice(0, 0, 8)
            .equal(at::tensor({1, 7, 8, 1, 2, 1, 14, 1})));
  CHECK(mask_of("palette-8.png").flatten().slice(0, 0, 4).equal(at::tensor({241, 83, 140, 230})));
  CHECK(mask_of("grey-alpha-8.png").flatten().slice(0, 0, 3).equal(at::tensor({101, 44, 253})));
}

TEST_CASE("a picture that is no mask is refused with its first colour") {
  const std::string folder = STEPOP_SOURCE_DIR "/tests/data/images/";
  const std::string colours = message_of([&] { read_mask(folder + "rgb-8.png"); });
  CHECK(colours.find("rgb-8.png: a mask is a PNG of class numbers, grey or with a palette; found "
                     "the colour [") != std::string::npos);
  CHECK(colours.find("] in column 0, row 0") != std::string::npos);
  CHECK(message_of([&] {
          read_mask(folder + "grey.jpg");
        }).find("a JPEG does not keep the numbers") != std::string::npos);
  CHECK(message_of([&] { decode_mask("BM..", "a.bmp"); }) ==
        "a.bmp: expected a PNG, JPEG or WebP, the file begins with 42 4d 2e 2e");
}

}  // namespace image_file_test
}  // namespace stepop
