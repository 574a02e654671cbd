#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/log/logs.h"
#include "runtime/core/log/sink.h"
#include "runtime/core/pictures/image_file.h"

namespace stepop {

/// A log whose pictures are not made yet. It shares no memory with the tensors that it is made of:
/// a training that goes on changes nothing of it.
struct UnfinishedLog {
  /// Images [B, C, H, W] on the CPU, which are to be one picture.
  struct Images {
    at::Tensor images;
    ImageEncoding encoding;
  };

  LogEvent event = {};
  LogRecord record = {};
  OrderedMap<Images> images = {};  ///< By the names that their pictures will have in `record`,
  OrderedMap<Video> videos = {};   ///< and so here, whose frames are on the CPU.

  bool has_files() const {
    return !images.empty() || !videos.empty() || !record.images.empty() || !record.texts.empty() ||
           !record.histograms.empty() || !record.curves.empty();
  }
};

/// Throws Error, with the name, for what is no video: of another shape or rate than `Video` says.
void check_video(const Video& video, const std::string& name);

/// Adds what of `logs` becomes files - images, videos, texts, histograms, curves - to a log, under
/// names that begin with `prefix` and a slash. Throws Error, with the key, for what cannot be a
/// file or is no image or curve.
void add_files(UnfinishedLog& log, const std::string& prefix, const Logs& logs,
               const ImageEncoding& encoding = {});

/// Makes the pictures of images, videos and curves, which are then in the log's record. Needs
/// nothing of the training, and may be called in another thread.
void make_pictures(UnfinishedLog& log);

/// Writes images and texts as files of their own, `<folder>/<name>_<step>.png` and `.txt`, each
/// whole or not there: `train/train/log_op/input_0000100.png`. Histograms and curves are a picture
/// and a table, `.csv`. `folder` must be there.
void write_log_files(const std::string& folder, int64_t step, const LogRecord& record);

/// The name of a picture's file within the folder: `train/log_op/input_0000100.jpg`.
std::string picture_file(std::string_view name, int64_t step, std::string_view bytes);

/// `loss_0000700`: a name with a step of at least seven digits behind it.
std::string name_with_step(std::string_view name, int64_t step);

/// What `name_with_step` put together, the step with any number of digits.
struct SteppedName {
  std::string name;
  int64_t step = 0;
};
/// Nothing for a name without a step behind its last `_`.
std::optional<SteppedName> parse_name_with_step(std::string_view name);

/// Throws Error unless `name`, such as the key of a logged image, can be the end of a path: its
/// parts between slashes have 1 to 200 bytes and are neither "." nor "..", and it has no byte 0.
/// `what` names it in the message: `train/log_op: the image`.
void check_file_name(const std::string& what, std::string_view name);

}  // namespace stepop
