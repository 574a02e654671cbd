// Masks in files: PNGs of class numbers beside their images.
#include <ATen/ops/arange.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <zlib.h>

#include <filesystem>

#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/resize.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace mask_files_test {

/// The classes 0 to 23 of 4 x 6 pixels, one of them void.
at::Tensor classes() {
  at::Tensor mask = at::arange(24).view({4, 6});
  mask[3][5] = 255;
  return mask;
}

std::string png_of(const at::Tensor& numbers) {
  return encode_png(numbers.to(at::kByte).unsqueeze(-1).contiguous());
}

/// `photos/a.png`, `b.png`, `c.png`, and `masks/a.png`, `b.png`: b is a upside down.
void write_files(const ScratchFolder& folder) {
  std::filesystem::create_directories(folder.path("photos"));
  std::filesystem::create_directories(folder.path("masks"));
  for (const char* name : {"a", "b", "c"}) {
    folder.write(std::string("photos/") + name + ".png", png_of(classes()));
  }
  folder.write("masks/a.png", png_of(classes()));
  folder.write("masks/b.png", png_of(at::flip(classes(), {0})));
}

TEST_CASE(
    "a column of a Csv, a key of JSON lines and pairs of folders read masks of class numbers") {
  const ScratchFolder folder;
  write_files(folder);
  const std::string csv =
      folder.write("a.csv", "file,mask\nphotos/a.png,masks/a.png\nphotos/b.png,masks/b.png\n");
  const std::string lines =
      folder.write("a.jsonl",
                   "{\"image\": \"photos/a.png\", \"mask\": \"masks/a.png\"}\n"
                   "{\"image\": \"photos/b.png\", \"mask\": \"masks/b.png\"}\n");
  const std::string pairs =
      "{class: PairedImages, input: " + folder.path("photos") + ", mask: " + folder.path("masks");
  for (const std::string& data :
       {"{class: Csv, columns: {file: image, mask: mask}, path: " + csv,
        "{class: JsonLines, images: [image], masks: [mask], path: " + lines, pairs}) {
    CAPTURE(data);
    const auto dataset = dataset_of(data + "}");
    CHECK(dataset->size() == 2);
    const at::Tensor mask = example_of(*dataset, 0).tensors.at("mask");
    CHECK((mask.scalar_type() == at::kLong));
    CHECK(mask.equal(classes()));
    const Batch batch = batch_of(*dataset, {0, 1});
    CHECK(batch["mask"].sizes() == at::IntArrayRef{2, 4, 6});
    CHECK(batch["mask"][1].equal(at::flip(classes(), {0})));
    // Half as large: the pixels at the centres, as Image.resize((3, 2), NEAREST) of Pillow.
    const bool is_pair = data.starts_with("{class: PairedImages");
    const auto small = dataset_of(data + (is_pair ? ", load_size: 2}" : ", size: [2, 3]}"));
    const at::Tensor resized = example_of(*small, 0).tensors.at("mask");
    CHECK(resized.equal(is_pair ? at::tensor({7, 10, 19, 22}).view({2, 2})
                                : at::tensor({7, 9, 11, 19, 21, 255}).view({2, 3})));
  }
}

/// A PNG with the chunk eXIf, orientation 3: turned by a half.
std::string upside_down(const std::string& png) {
  constexpr size_t kAfterHeader = 8 + 25;  // signature and IHDR
  const std::string chunk("eXIfMM\0*\0\0\0\10\0\1\1\22\0\3\0\0\0\1\0\3\0\0\0\0\0\0", 4 + 26);
  const auto big_endian = [](uint64_t number) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
    return bytes;
  };
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(chunk.data()), chunk.size());
  return png.substr(0, kAfterHeader) + big_endian(26) + chunk + big_endian(sum) +
         png.substr(kAfterHeader);
}

TEST_CASE("exif: true turns masks as their images, each by its own orientation; else it is said") {
  const ScratchFolder folder;
  write_files(folder);
  folder.write("photos/a.png", upside_down(png_of(classes())));
  folder.write("masks/a.png", upside_down(png_of(classes())));
  folder.write("photos/b.png", upside_down(png_of(classes())));
  const std::string csv =
      folder.write("a.csv", "image,mask\nphotos/a.png,masks/a.png\nphotos/b.png,masks/b.png\n");
  const std::string lines =
      folder.write("a.jsonl",
                   "{\"image\": \"photos/a.png\", \"mask\": \"masks/a.png\"}\n"
                   "{\"image\": \"photos/b.png\", \"mask\": \"masks/b.png\"}\n");
  for (const std::string& data :
       {"{class: Csv, columns: {image: image, mask: mask}, path: " + csv,
        "{class: JsonLines, images: [image], masks: [mask], path: " + lines,
        "{class: PairedImages, input: " + folder.path("photos") +
            ", mask: " + folder.path("masks")}) {
    CAPTURE(data);
    const auto stored = dataset_of(data + "}");
    CHECK(example_of(*stored, 0).tensors.at("mask").equal(classes()));
    for (const char* said :
         {"2 of 2 images have an EXIF orientation", "1 of 2 images has an EXIF"}) {
      CHECK(stored->notice().find(said) != std::string::npos);
    }
    const auto turned = dataset_of(data + ", exif: true}");
    CHECK(turned->notice().find("EXIF") == std::string::npos);
    const Example both = example_of(*turned, 0);
    const at::Tensor* image = both.tensors.find("image");
    if (image == nullptr) image = both.tensors.find("input");
    CHECK(image->squeeze(0).equal(
        at::flip(from_stored_image(classes().to(at::kByte).unsqueeze(0)).squeeze(0), {0, 1})));
    CHECK(both.tensors.at("mask").equal(at::flip(classes(), {0, 1})));
    CHECK(both.tensors.at("mask").is_contiguous());
    CHECK(example_of(*turned, 1).tensors.at("mask").equal(at::flip(classes(), {0})));
  }
}

TEST_CASE("masks are resized as Pillow's NEAREST does it, to any size") {
  const at::Tensor row = at::arange(5).view({1, 5});
  // Image.fromarray(numpy.arange(5, dtype="uint8")[None]).resize((n, 1), Image.NEAREST)
  CHECK(resize_mask(row, {1, 7}).equal(at::tensor({0, 1, 1, 2, 3, 3, 4}).view({1, 7})));
  CHECK(resize_mask(row, {1, 3}).equal(at::tensor({0, 2, 4}).view({1, 3})));
  CHECK(resize_mask(row, {1, 2}).equal(at::tensor({1, 3}).view({1, 2})));
  CHECK(resize_mask(row, {2, 5}).equal(row.expand({2, 5})));
}

TEST_CASE("pairs with masks say which images they leave out, and what does not fit") {
  const ScratchFolder folder;
  write_files(folder);
  const std::string pairs =
      "{class: PairedImages, input: " + folder.path("photos") + ", mask: " + folder.path("masks");
  CHECK(dataset_of(pairs + "}")->notice() ==
        folder.path("photos") + ": left out 1 image without a mask in " + folder.path("masks"));
  const auto part = dataset_of(pairs + ", crop: 2, random: false}");
  CHECK(example_of(*part, 0).tensors.at("mask").equal(at::tensor({8, 9, 14, 15}).view({2, 2})));
  CHECK(example_of(*part, 0).tensors.at("input").sizes() == at::IntArrayRef{1, 2, 2});
  const auto said = [&](const std::string& more) {
    return message_of([&] { dataset_of(pairs + more + "}"); });
  };
  CHECK(said(", direction: BtoA") ==
        "test.yaml:1: data/direction: not with mask, which is the target");
  CHECK(said(", augmentations: {}")
            .find("data/augmentations: not with mask; an Augment around the pairs "
                  "moves masks with their images") != std::string::npos);
  folder.write("masks/d.png", png_of(classes()));
  CHECK(said("").find("photos has no image d.jpg or .png for the mask ") != std::string::npos);
  std::filesystem::remove(folder.path("masks/d.png"));
  folder.write("masks/a.png", png_of(at::full({2, 2}, 1)));
  CHECK(
      message_of([&] { example_of(*dataset_of(pairs + "}"), 0); })
          .find(
              "masks/a.png: expected an image and a mask of one size, found float32 [1, 4, 6] and "
              "int64 [2, 2]; \"load_size: 256\" makes them so") != std::string::npos);
}

TEST_CASE(
    "an Augment moves masks of files with their images, and leaves out what is beyond the border") {
  const ScratchFolder folder;
  write_files(folder);
  const auto dataset = dataset_of(
      "{class: Augment, images: [input], masks: [mask], augmentations: [{class: "
      "RandomHorizontalFlip, p: 1}, {class: CenterCrop, size: [6, 8]}], dataset: {class: "
      "PairedImages, input: " +
      folder.path("photos") + ", mask: " + folder.path("masks") + "}}");
  const Example example = example_of(*dataset, 0);
  const at::Tensor& mask = example.tensors.at("mask");
  REQUIRE(mask.sizes() == at::IntArrayRef{6, 8});
  CHECK(mask.narrow(0, 1, 4).narrow(1, 1, 6).equal(at::flip(classes(), {1})));
  CHECK(mask[0].eq(-100).all().item<bool>());
  CHECK(example.tensors.at("input").sizes() == at::IntArrayRef{1, 6, 8});
}

}  // namespace mask_files_test
}  // namespace stepop
