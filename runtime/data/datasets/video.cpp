#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

constexpr int64_t kMostFrames = 1 << 16;

/// A video file in the folder; empty when there is none. Only folders of frames can be read.
std::string find_video_file(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored)) {
    std::string extension = entry.path().extension().string();
    for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    for (const char* known : {".mp4", ".avi", ".mkv", ".mov", ".webm", ".m4v", ".mpg", ".gif"}) {
      if (extension == known) return entry.path().lexically_relative(folder).string();
    }
  }
  return "";
}

/// Pieces of videos. The frames of each video are images in its own folder, sorted by their names.
///
/// An example holds `frames`, float [T, C, H, W] in [-1, 1], `video`, int64 [], the number of the
/// folder, and the text `path` of its first frame. `labels("video")` gives the folder numbers of
/// all pieces.
class Video : public Dataset {
 public:
  struct Params {
    InputFolder path;
    int64_t length = 16;
    int64_t step = 1;
    std::optional<int64_t> stride;
    ImageOptions images;

    void declare(Parameters& p) {
      const Range frames = at_least(1).at_most(kMostFrames);
      p.require("path", path, "folder of the videos' folders");
      p.add("length", length, "frames of a piece", frames);
      p.add("step", step, "from one frame of a piece to the next", frames);
      p.add("stride", stride,
            "frames from one piece to the next; null: the frames that a piece spans", frames);
      images.declare(p);
    }
  };

  Video(const Params& params, const Config& config)
      : folder_(params.path.text),
        reader_(params.images),
        length_(params.length),
        step_(params.step),
        stride_(params.stride.value_or(length_ * step_)) {
    std::map<std::string, std::vector<std::string>> folders;
    LeftOut left_out;
    images_ = list_images(folder_, left_out);
    for (const auto& file : images_) {
      folders[std::filesystem::path(file).parent_path().string()].push_back(file);
    }
    left_out_notice_ = left_out.notice(folder_, std::ssize(images_));
    if (folders.empty()) throw Error(nothing_found());
    const int64_t span = (length_ - 1) * step_ + 1;
    for (auto& [name, files] : folders) {
      const auto count = static_cast<int64_t>(files.size());
      for (int64_t first = 0; first + span <= count; first += stride_) {
        pieces_.push_back({static_cast<int64_t>(videos_.size()), first});
      }
      longest_ = std::max(longest_, count);
      if (count < span) ++short_;
      videos_.push_back(std::move(files));
    }
    if (pieces_.empty()) {
      throw config.error("length",
                         fmt::format("a piece of {} frames with step {} spans {}; the "
                                     "longest of {} videos in {} has {}",
                                     length_, step_, span, videos_.size(), folder_, longest_));
    }
  }

  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size());
    const Piece& piece = pieces_[static_cast<size_t>(index)];
    const auto& files = videos_[static_cast<size_t>(piece.video)];
    std::vector<at::Tensor> frames;
    for (int64_t i = 0; i < length_; ++i) {
      const std::string& file = files[static_cast<size_t>(piece.first + i * step_)];
      frames.push_back(reader_.read(folder_ + "/" + file));
      if (frames.back().sizes() == frames.front().sizes()) continue;
      throw Error(
          fmt::format("{}/{}: has another size than the frames before it; \"size\" and "
                      "\"channels\" make them equal",
                      folder_, file));
    }
    return {.tensors = {{"frames", at::stack(frames)},
                        {"video", at::scalar_tensor(piece.video, at::kLong)}},
            .texts = {{"path", files[static_cast<size_t>(piece.first)]}}};
  }

  at::Tensor labels(std::string_view key) const override {
    if (key != "video") return {};
    at::Tensor videos = at::empty({size()}, at::kLong);
    auto* video = videos.mutable_data_ptr<int64_t>();
    for (const Piece& piece : pieces_) *video++ = piece.video;
    return videos;
  }

  std::vector<std::string> label_keys() const override { return {"video"}; }

  std::string notice() const override {
    std::string text;
    if (short_ > 0) {
      text = fmt::format("{}: {} of {} left out: shorter than a piece", folder_,
                         with_thousands(short_), counted(std::ssize(videos_), "video"));
    }
    return joined_notices({text, left_out_notice_, reader_.notice(folder_, images_)});
  }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return ImageReader::collate(examples, std::move(indices));
  }

 private:
  struct Piece {
    int64_t video;
    int64_t first;  ///< The first frame.
  };

  std::string nothing_found() const {
    const std::string file = find_video_file(folder_);
    const std::string text =
        folder_ + ": holds no frames; they are looked for as VIDEO/NAME.png, .jpg or .jpeg";
    if (file.empty()) return text;
    const std::string name = std::filesystem::path(file).replace_extension().string();
    return fmt::format(
        "{}. Frames of a video's file are made once: cd {} && mkdir {} && ffmpeg -i "
        "{} -qscale:v 2 {}/%06d.jpg",
        text, folder_, name, file, name);
  }

  std::string folder_;
  ImageReader reader_;
  int64_t length_;
  int64_t step_;
  int64_t stride_;
  std::vector<std::string> images_;  ///< All frames, relative to `folder_`.
  std::string left_out_notice_;
  std::vector<std::vector<std::string>> videos_;  ///< Each video's frames, relative to `folder_`.
  std::vector<Piece> pieces_;
  int64_t longest_ = 0;  ///< The length of the longest video in frames.
  int64_t short_ = 0;    ///< The number of videos that are too short for a piece.
};

STEPOP_REGISTER_DATASET(
    Video, {"Pieces of videos whose frames are PNG or JPEG images, a folder for each video."});

}  // namespace
}  // namespace stepop
