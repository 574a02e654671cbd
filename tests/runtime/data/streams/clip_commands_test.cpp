#include "runtime/data/streams/clip_commands.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "runtime/core/pictures/image_file.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/core/programs/find_program.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/runtime/data/streams/shards.h"

namespace stepop {
namespace clip_commands_test {

using namespace stepop::shards_for_tests;

TEST_CASE("a command of the user's makes the frames of a video") {
  const ScratchFolder folder;
  std::string clip;
  for (int i = 0; i < 6; ++i)
    clip += i % 2 == 0 ? png(40 * i) : encode_jpeg(at::full({4, 6, 3}, 40 * i, at::kByte), 100);
  folder.write("a.tar", tar_member("1.mp4", clip) + tar_member("1.txt", "greys") + tar_end());
  const auto frames = [&](const std::string& more) {
    TarShards stream(config_of("path: " + folder.path() + "\n" + more));
    stream.begin({});
    Random random(1);
    return stream.decode(*stream.next({}), random);
  };
  const std::string cat = "decode: {mp4: 'cat {file}'}\n";
  const Example all = frames(cat);
  CHECK(all.texts.at("text") == "greys");
  const at::Tensor video = all.tensors.at("frames");
  CHECK(video.sizes() == at::IntArrayRef({6, 3, 4, 6}));
  for (int i = 0; i < 6; ++i) {
    CHECK(video[i].mean().item<double>() == doctest::Approx(40 * i / 127.5 - 1).epsilon(0.01));
  }
  const at::Tensor few = frames(cat + "frames: 4\nchannels: 1\nsize: [2, 2]").tensors.at("frames");
  CHECK(few.sizes() == at::IntArrayRef({4, 1, 2, 2}));
  CHECK(few[3].mean().item<double>() == doctest::Approx(160 / 127.5 - 1).epsilon(0.01));  // frame 4
  CHECK(frames(cat + "keys: {mp4: video}").tensors.key_list() == "video");

  CHECK(message_of([&] { frames("decode: {mp4: 'cat'}"); }) ==
        "test.yaml:2: decode/mp4: the command has no {file} in it");
  CHECK(message_of([&] {
          frames("decode: {mp4: 'true {file}'}");
        }).starts_with(".mp4: the command printed no picture:\n  true /proc/"));
  CHECK(message_of([&] {
          frames("decode: {mp4: 'head -c 50 {file}'}");
        }).starts_with(".mp4: picture 0 of the command's: "));
  CHECK(message_of([&] {
          frames("decode: {mp4: 'echo broken >&2; exit 3; {file}'}");
        }).starts_with(".mp4: the command failed: it ended with status 3: broken\n  echo broken"));
  CHECK(message_of([&] {
          frames("timeout: 0.2\ndecode: {mp4: 'exec sleep 100; {file}'}");
        }).starts_with(".mp4: the command failed: it gave no byte for 0.2 s\n"));
}

TEST_CASE("a JPEG ends at its own end, not at that of the thumbnail in it") {
  const ScratchFolder folder;
  const auto picture = [](const std::string& name) {
    return read_bytes(STEPOP_SOURCE_DIR "/tests/data/images/" + name);
  };
  std::string clip;
  for (const char* name : {"thumbnail.jpg", "rgb-progressive.jpg", "thumbnail.jpg", "rgb.jpg"}) {
    clip += picture(name);
  }
  folder.write("a.tar", tar_member("1.mjpg", clip) + tar_end());
  TarShards stream(config_of("path: " + folder.path() + "\ndecode: {mjpg: 'cat {file}'}\n"));
  stream.begin({});
  Random random(1);
  const at::Tensor frames = stream.decode(*stream.next({}), random).tensors.at("frames");
  REQUIRE(frames.sizes() == at::IntArrayRef({4, 3, 24, 16}));
  for (const int i : {0, 2, 3}) {
    CHECK(at::equal(frames[i], decode_image(picture("rgb.jpg"), "rgb.jpg")));
  }
  CHECK(at::allclose(frames[1], frames[3], 0, 0.05));
}

TEST_CASE("ffmpeg, where it is installed, makes the frames of an mp4") {
  if (find_program("ffmpeg").empty()) return;
  const ScratchFolder folder;
  for (int i = 0; i < 8; ++i) {
    folder.write(fmt::format("{}.png", i), encode_png(at::full({32, 48, 3}, 20 * i, at::kByte)));
  }
  run_child({"ffmpeg", "-v", "error", "-framerate", "8", "-i", folder.path("%d.png"), "-pix_fmt",
             "yuv420p", folder.path("v.mp4")});
  folder.write("a.tar", tar_member("1.mp4", read_bytes(folder.path("v.mp4"))) + tar_end());
  TarShards stream(
      config_of("path: " + folder.path("a.tar") +
                "\ndecode: {mp4: 'ffmpeg -v error -i {file} -f image2pipe -c:v png -'}"));
  stream.begin({});
  Random random(1);
  const at::Tensor video = stream.decode(*stream.next({}), random).tensors.at("frames");
  CHECK(video.sizes() == at::IntArrayRef({8, 3, 32, 48}));
  for (int i = 0; i < 8; ++i) {
    CHECK(std::abs(video[i].mean().item<double>() - (20 * i / 127.5 - 1)) < 0.05);
  }
}

}  // namespace clip_commands_test
}  // namespace stepop
