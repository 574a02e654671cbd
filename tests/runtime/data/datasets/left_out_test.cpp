// Files that a reader of folders does not read are said.
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/webp.h"
#include "runtime/data/notice.h"
#include "tests/dataset_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"
#include "tests/tar_file.h"

namespace stepop {
namespace left_out_test {

const std::string kImages = STEPOP_SOURCE_DIR "/tests/data/images/";

/// Copies one of the images of the tests.
void add(const ScratchFolder& folder, const std::string& name, const std::string& image) {
  folder.write(name, read_plain_or_gzip(kImages + image));
}

std::string notice_of(const std::string& yaml) { return dataset_of(yaml)->notice(); }

TEST_CASE("a folder of images says what it leaves out, by folder and ending") {
  const ScratchFolder folder;
  for (const char* name : {"cat/0.png", "cat/1.png", "dog/0.png"}) add(folder, name, "rgb-8.png");
  add(folder, "beside.png", "rgb-8.png");
  folder.write("cat/3.BMP", "BM");
  folder.write("dog/deep/a.tif", "II");
  folder.write("dog/deep/b.tif", "II");
  folder.write("dog/README", "dogs");
  folder.write(".hidden/a.bmp", "BM");
  const std::string yaml = "{class: ImageFolder, path: " + folder.path();
  CHECK(notice_of(yaml + "}") ==
        "warning: " + folder.path() +
            ": 5 of 8 files left out: in the folder itself 1 .png; in cat 1 .bmp; in dog 1 without "
            "an ending; in dog/deep 2 .tif");
  CHECK(notice_of(yaml + ", classes: []}") ==
        "warning: " + folder.path() +
            ": 4 of 8 files left out: in cat 1 .bmp; in dog 1 without an ending; in dog/deep 2 "
            ".tif");
  // A view says it, too; a link that leads nowhere is a file that is left out.
  std::filesystem::create_symlink("/nowhere/2.png", folder / "cat/2.png");
  CHECK(notice_of("{class: Subset, range: [0, 1], dataset: " + yaml + "}}")
            .find("in cat 1 .bmp, 1 .png;") != std::string::npos);
}

TEST_CASE("many folders are not all named") {
  const ScratchFolder folder;
  for (int i = 0; i < 7; ++i) {
    add(folder, fmt::format("{}/a.png", i), "rgb-8.png");
    folder.write(fmt::format("{}/b.gif", i), "GIF89a");
  }
  CHECK(notice_of("{class: ImageFolder, path: " + folder.path() + "}") ==
        "warning: " + folder.path() +
            ": 7 of 14 files left out: in 0 1 .gif; in 1 1 .gif; in 2 1 .gif; in 3 1 .gif; in 4 1 "
            ".gif; and in 2 more folders");
}

TEST_CASE("WebP is an image where libwebp is installed") {
  const ScratchFolder folder;
  add(folder, "a/0.png", "rgb-8.png");
  add(folder, "a/1.webp", "rgb-lossless.webp");
  const auto data = dataset_of("{class: ImageFolder, path: " + folder.path() + "}");
  CHECK(data->size() == (has_webp() ? 2 : 1));
  if (!has_webp()) {
    CHECK(
        data->notice().ends_with(".webp is read with libwebp (Debian: apt-get install "
                                 "libwebp7)"));
    return;
  }
  CHECK(data->notice().empty());
  CHECK(example_of(*data, 1).tensors.at("image").equal(example_of(*data, 0).tensors.at("image")));
}

TEST_CASE("pairs, captions, videos and corrupted images say what they leave out") {
  const ScratchFolder folder;
  add(folder, "hq/a.png", "rgb-8.png");
  add(folder, "lq/a.png", "rgb-8.png");
  add(folder, "lq/b.png", "rgb-8.png");
  add(folder, "hq/a_ref.jpg", "rgb.jpg");
  folder.write("hq/c.gif", "GIF89a");
  folder.write("hq/a.txt", "a");
  folder.write("hq/orphan.txt", "b");
  std::filesystem::rename(folder / "hq/a_ref.jpg", folder / "hq_ref.jpg");
  const std::string hq = folder.path("hq");
  const std::string lq = folder.path("lq");
  CHECK(notice_of("{class: PairedImages, scale: 1, hq: " + hq + ", lq: " + lq + "}") ==
        "warning: " + hq + ": 3 of 4 files left out: in the folder itself 1 .gif, 2 .txt\n" +
            "warning: " + lq + ": 1 of 2 files left out: in the folder itself 1 .png");
  CHECK(notice_of("{class: PairedImages, folder: " + hq + "}") ==
        "warning: " + hq + ": 3 of 4 files left out: in the folder itself 1 .gif, 2 .txt");
  CHECK(notice_of("{class: ImageText, path: " + hq + "}") ==
        "warning: " + hq + ": 2 of 3 files left out: in the folder itself 1 .gif, 1 .txt");
  CHECK(notice_of("{class: Video, length: 1, path: " + folder.path() + "}").find("1 .gif") !=
        std::string::npos);
  std::filesystem::rename(folder / "hq_ref.jpg", folder / "hq/a_ref.jpg");
  CHECK(notice_of("{class: CorruptedImages, fixed_corruptions: [none], random_corruptions: [none], "
                  "num_corrupts_per_image: 0, paths: " +
                  hq + "}")
            .find("1 .gif, 1 .jpg, 2 .txt") != std::string::npos);
}

TEST_CASE("shards say what lies beside them, and which members cannot be read") {
  const ScratchFolder folder;
  const std::string png = read_plain_or_gzip(kImages + "rgb-8.png");
  folder.write("a.tar", tar_member("0.png", png) + tar_member("0.tif", "II") +
                            tar_member("1.png", png) + tar_member("1.tif", "II") + tar_end());
  folder.write("b.tar.zst", "zst");
  const std::string yaml = "{class: TarShards, path: " + folder.path();
  const std::string beside =
      "warning: " + folder.path() + ": 1 of 2 files left out: in the folder itself 1 .zst";
  CHECK(notice_of(yaml + "}") == beside + "\nwarning: " + folder.path() +
                                     "/a.tar: members that cannot be read are left out: of the "
                                     "first 2 records 2 .tif");
  CHECK(notice_of(yaml + ", keys: {png: image}}") == beside);
}

TEST_CASE("an EXIF orientation that is not applied is said, and exif: true applies it") {
  const ScratchFolder folder;
  add(folder, "a/0.jpg", "rgb.jpg");
  add(folder, "a/1.jpg", "sideways.jpg");
  add(folder, "a/2.png", "sideways.png");
  const std::string yaml = "{class: ImageFolder, path: " + folder.path();
  CHECK(
      notice_of(yaml + "}") ==
      "warning: " + folder.path() +
          ": 2 of 3 images have an EXIF orientation (a/1.jpg: 6) and are read as stored, mirrored "
          "or on the side; \"exif: true\" turns images upright");
  const auto stored = dataset_of(yaml + "}");
  const auto turned = dataset_of(yaml + ", exif: true}");
  CHECK(turned->notice().empty());
  for (int64_t i = 0; i < 3; ++i) {
    const at::Tensor a = example_of(*stored, i).tensors.at("image");
    const at::Tensor b = example_of(*turned, i).tensors.at("image");
    // Orientation 6: the first row is the last column.
    CHECK(b.equal(i == 0 ? a : a.transpose(1, 2).flip({2})));
    CHECK(b.is_contiguous());
  }
  const auto table = folder.write("t.csv", "f\na/1.jpg\n");
  const std::string csv = "{class: Csv, columns: {f: image}, path: " + table;
  CHECK(notice_of(csv + "}").find("1 of 1 image has an EXIF orientation") != std::string::npos);
  CHECK(example_of(*dataset_of(csv + ", exif: true}"), 0)
            .tensors.at("f")
            .equal(example_of(*turned, 1).tensors.at("image")));
  const auto lines = folder.write("t.jsonl", "{\"f\": \"a/1.jpg\"}\n");
  const std::string json = "{class: JsonLines, images: [f], path: " + lines;
  CHECK(notice_of(json + "}").find("1 of 1 image has an EXIF orientation") != std::string::npos);
  CHECK(example_of(*dataset_of(json + ", exif: true}"), 0)
            .tensors.at("f")
            .equal(example_of(*turned, 1).tensors.at("image")));
  CHECK(notice_of("{class: PairedImages, input: " + folder.path() + "/a, target: " + folder.path() +
                  "/a}")
            .find("2 of 3 images have an EXIF") != std::string::npos);
}

TEST_CASE("shards say the EXIF orientations of their pictures, which exif: true applies") {
  const ScratchFolder folder;
  const auto read = [](const char* name) { return read_plain_or_gzip(kImages + name); };
  folder.write("a.tar", tar_member("0.jpg", read("rgb.jpg")) + tar_member("0.cls", "0") +
                            tar_member("1.jpg", read("sideways.jpg")) + tar_member("1.cls", "0") +
                            tar_end());
  const std::string yaml = "{class: TarShards, path: " + folder.path();
  CHECK(notice_of(yaml + "}") ==
        "warning: " + folder.path() +
            "/a.tar: 1 of 2 images has an EXIF orientation (1.jpg: 6) and is read as stored, "
            "mirrored or on the side; \"exif: true\" turns images upright");
  CHECK(notice_of(yaml + ", exif: true}").empty());
  CHECK(notice_of(yaml + ", keys: {cls: class}}").empty());
}

TEST_CASE("notices are split into infos and warnings, each line once") {
  const std::string all = joined_notices({"a", "", "warning: b\na", "warning: b"});
  CHECK(all == "a\nwarning: b");
  const Notices parts = split_notices(all);
  CHECK(parts.infos == "a");
  CHECK(parts.warnings == "b");
}

}  // namespace left_out_test
}  // namespace stepop
