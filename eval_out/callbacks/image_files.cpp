#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval_out/callbacks/row_values.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/image_grid.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/folders.h"

namespace stepop {
namespace {

struct ImageFileParams {
  std::vector<std::string> images;
  std::optional<std::string> by;
  std::string format = "png";
  int64_t quality = ImageEncoding::kDefaultQuality;

  void declare(Parameters& p) {
    p.require("images", images,
              "the keys of the images, in the outputs or the dataset: [prediction]");
    p.add("by", by, "key of one number an example: a folder for each of its values");
    p.add("format", format, "png or jpeg", one_of({"png", "jpeg"}));
    p.add("quality", quality, "of a JPEG, 1 to 100", at_least(1).at_most(100));
  }
};

/// One value for each row, as the name of a folder.
class FolderOfRow {
 public:
  FolderOfRow(const CallbackArguments& arguments, const std::optional<std::string>& key) {
    if (!key) return;
    values_ = std::make_unique<RowValues>(arguments, *key, "by", RowValues::From::kFileOrDataset);
    if (values_->shape().empty() && !c10::isComplexType(values_->dtype())) return;
    throw Error(fmt::format("{} must hold one number an example to name folders, found {}",
                            values_->name(), shape_text(values_->shape())));
  }

  /// `/7`, or nothing.
  std::string operator()(int64_t row) const {
    if (values_ == nullptr) return "";
    return "/" + short_number(values_->read(row, 1).to(at::kDouble).item<double>());
  }

 private:
  std::unique_ptr<RowValues> values_;
};

/// Writes each image of some keys as a file that has the number of its example.
Logs image_files(const CallbackArguments& arguments, const ImageFileParams& params) {
  const ImageEncoding encoding{.is_jpeg = params.format == "jpeg",
                               .quality = static_cast<int>(params.quality)};
  const FolderOfRow folder_of_row(arguments, params.by);
  const EvalFile& file = arguments.data_out;
  Logs logs;
  int64_t count = 0;
  for (const auto& key : params.images) {
    const RowValues images(arguments, key, "images", RowValues::From::kFileOrDataset);
    check_images(images, Channels::kAny);
    for (int64_t row = 0; row < images.rows(); ++row) {
      file.throw_if_interrupted();
      const std::string folder = arguments.path_of(key + folder_of_row(row));
      make_folders(folder);
      write_file_atomically(fmt::format("{}/{:07}.{}", folder, file.index(row, 1).item<int64_t>(),
                                        encoding.is_jpeg ? "jpg" : "png"),
                            encode_image(image_grid(to_images(images.read(row, 1))), encoding));
      ++count;
    }
  }
  logs.scalars.set("files", static_cast<double>(count));
  return logs;
}

STEPOP_REGISTER_CALLBACK(image_files, image_files,
                         {"Each image as a file, <key>/<the example's number>.png."});
STEPOP_CALLBACK_KEYS(image_files, {"images"});
STEPOP_CALLBACK_CHECK(image_files,
                      [](const Config& params) { read_parameters<ImageFileParams>(params); });

}  // namespace
}  // namespace stepop
