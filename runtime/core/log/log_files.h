#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/log/logs.h"
#include "runtime/core/log/sink.h"
#include "runtime/core/pictures/image_file.h"

namespace stepop {

/// A log whose pictures are not made yet. It shares no memory with the logged tensors, so the
/// training may continue.
struct UnfinishedLog {
  /// Images [B, C, H, W] on the CPU for one picture.
  struct Images {
    at::Tensor images;
    ImageEncoding encoding;
  };

  LogEvent event = {};
  LogRecord record = {};
  OrderedMap<Images> images = {};  ///< By the names of their pictures in `record`
  OrderedMap<Video> videos = {};   ///< the same, with frames on the CPU.
  OrderedMap<Audio> audio = {};    ///< Samples [B, C, T] on the CPU, by the beginnings of names.

  bool has_files() const {
    return !images.empty() || !videos.empty() || !audio.empty() || !record.images.empty() ||
           !record.texts.empty() || !record.histograms.empty() || !record.curves.empty();
  }
};

/// Throws Error, with the name, for a shape or a rate that `Video` does not allow.
void check_video(const Video& video, const std::string& name);

/// Throws Error, with the name, for a shape or a rate that `Audio` does not allow.
void check_audio(const Audio& audio, const std::string& name);

/// Adds the parts of `logs` that become files (all but scalars) to a log,
/// with names that begin with `prefix` and a slash. Throws Error, with the key, for a name that
/// cannot be a file, and for a bad image or curve.
void add_files(UnfinishedLog& log, const std::string& prefix, const Logs& logs,
               const ImageEncoding& encoding = {});

/// Makes the pictures and the sounds, and puts them into the log's record. Does not
/// access the training, so another thread may call it.
void make_pictures(UnfinishedLog& log);

/// Writes each image, sound and text to a file, `<folder>/<name>_<step>.png`, `.wav` or `.txt`,
/// whole or not at all: `train/train/log_op/input_0000100.png`. Histograms and curves become a
/// picture and a table,
/// `.csv`. `folder` must exist.
void write_log_files(const std::string& folder, int64_t step, const LogRecord& record);

/// The path of a picture's file within the folder: `train/log_op/input_0000100.jpg`.
std::string picture_file(std::string_view name, int64_t step, std::string_view bytes);

/// `loss_0000700`: a name followed by a step with at least seven digits.
std::string name_with_step(std::string_view name, int64_t step);

/// The parts of such a name; the step may have any number of digits.
struct SteppedName {
  std::string name;
  int64_t step = 0;
};
/// Nothing for a name without a step after its last `_`.
std::optional<SteppedName> parse_name_with_step(std::string_view name);

/// Throws Error unless `name`, such as the key of a logged image, can be the end of a path: the
/// parts between slashes have 1 to 200 bytes and are neither "." nor "..", and no byte is 0. `what`
/// names the object in the message: `train/log_op: the image`.
void check_file_name(const std::string& what, std::string_view name);

}  // namespace stepop
