#include "iterators/trainer/model_sampler.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/canvas.h"
#include "runtime/core/pictures/image_grid.h"

namespace stepop {
namespace {

/// Breaks a caption into lines of at most `width` pixels, except for longer words.
std::vector<std::string> lines_of(const std::string& caption, int64_t width) {
  std::vector<std::string> lines;
  std::string line;
  for (size_t begin = 0; begin < caption.size();) {
    const size_t end = std::min(caption.find(' ', begin), caption.size());
    const std::string word = caption.substr(begin, end - begin);
    const std::string longer = line.empty() ? word : line + " " + word;
    if (!line.empty() && pixel_width(longer) > width) {
      lines.push_back(line);
      line = word;
    } else {
      line = longer;
    }
    begin = end + 1;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace

ModelSamplerRegistry& model_samplers() {
  static ModelSamplerRegistry registry("model sampler", "function");
  return registry;
}

PreprocessorRegistry& preprocessors() {
  static PreprocessorRegistry registry("preprocessor", "function");
  return registry;
}

PostprocessorRegistry& postprocessors() {
  static PostprocessorRegistry registry("postprocessor", "function");
  return registry;
}

void add_preprocessor(Parameters& p, Preprocessor& process, std::string_view about) {
  process = [](const Batch& batch) { return batch; };
  const Config* config = p.describe_optional("preprocess", "component preprocessor", about);
  if (config != nullptr) process = preprocessors().build(*config, "preprocess");
}

void add_postprocessor(Parameters& p, Postprocessor& process, std::string_view about) {
  process = [](const at::Tensor& samples) { return samples; };
  const Config* config = p.describe_optional("postprocess", "component postprocessor", about);
  if (config != nullptr) process = postprocessors().build(*config, "postprocess");
}

at::Tensor captioned_rows(const at::Tensor& images, const std::vector<std::string>& captions,
                          int64_t columns, int64_t least_side) {
  try {
    check_images(images);
  } catch (const Error& error) {
    throw Error(fmt::format("what the model makes, after postprocess: {}", error.what()));
  }
  std::vector<CaptionedImage> shown;
  for (int64_t i = 0; i < images.size(0); ++i) {
    CaptionedImage image{thumbnail(images.slice(0, i, i + 1), least_side), {}};
    const auto place = static_cast<size_t>(i);
    if (place < captions.size()) {
      image.lines = lines_of(captions[place], std::max(image.image.size(1), kThumbnailSide));
    }
    shown.push_back(std::move(image));
  }
  const at::Tensor picture = captioned_picture(shown, columns);  // uint8 [H', W', 3]
  return picture.permute({2, 0, 1}).unsqueeze(0).to(at::kFloat).sub_(127.5).div_(127.5);
}

}  // namespace stepop
