#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/datasets/pairs/pair_source.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

/// The image cut at its right and lower border so that `scale` divides its sides.
at::Tensor multiple_of(const at::Tensor& image, int64_t scale) {
  return image.narrow(1, 0, image.size(1) / scale * scale)
      .narrow(2, 0, image.size(2) / scale * scale);
}

at::Tensor reduced(const at::Tensor& large, int64_t scale) {
  return at::_upsample_bicubic2d_aa(large.unsqueeze(0),
                                    {large.size(1) / scale, large.size(2) / scale},
                                    /*align_corners=*/false)
      .squeeze(0)
      .clamp_(-1, 1);
}

class ReducedExamples : public PairSource {
 public:
  explicit ReducedExamples(PairOptions options)
      : scale_(options.scale), dataset_(std::move(options.dataset)), key_(options.key) {}

  std::string notice() const override { return dataset_->notice(); }

  int64_t size() const override { return dataset_->size(); }

  Example get(int64_t index, Random& random) const override {
    const Example example = dataset_->get(index, random);
    const at::Tensor* image = example.tensors.find(key_);
    if (image == nullptr || image->dim() != 3 || image->scalar_type() != at::kFloat) {
      throw Error(fmt::format(
          "PairedImages: expected a float32 image [C, H, W] under \"{}\", found "
          "{}; the dataset has: {}",
          key_, image == nullptr ? "none" : describe_tensor(*image), example.tensors.key_list()));
    }
    const at::Tensor large = multiple_of(*image, scale_);
    return {.tensors = {{"hq", large}, {"lq", reduced(large, scale_)}}, .texts = {}};
  }

  std::string place_of(int64_t) const override { return ""; }

 private:
  int64_t scale_;
  std::unique_ptr<Dataset> dataset_;
  std::string key_;  ///< The key of the image in the dataset's examples.
};

class ScaledFolders : public PairSource {
 public:
  ScaledFolders(const PairOptions& options, const Config& config)
      : scale_(options.scale), large_(images_in(options.hq->text)), reader_(options.images) {
    if (!options.lq) return;
    small_folder_ = options.lq->text;
    check_same_names(config, "lq", small_folder_, "hq", large_);
  }

  int64_t size() const override { return static_cast<int64_t>(large_.files.size()); }

  Example get(int64_t index, Random& /*random*/) const override {
    const std::string& file = large_.files[static_cast<size_t>(index)];
    const at::Tensor large = multiple_of(reader_.read(large_.path_of(index)), scale_);
    const at::Tensor small =
        small_folder_.empty() ? reduced(large, scale_) : reader_.read(small_folder_ + "/" + file);
    const int64_t height = large.size(1) / scale_;
    const int64_t width = large.size(2) / scale_;
    if (small.size(1) != height || small.size(2) != width) {
      throw Error(fmt::format("{}: expected a size of {} x {}, a part of {} of {}, found {}",
                              small_folder_ + "/" + file, height, width, scale_,
                              large_.path_of(index), describe_tensor(small)));
    }
    return {.tensors = {{"hq", large}, {"lq", small}}, .texts = {{"path", file}}};
  }

  std::string place_of(int64_t index) const override { return large_.place_of(index); }
  std::string notice() const override {
    return joined_notices({large_.notice(reader_), small_folder_.empty() ? "" : notice_of_small()});
  }

 private:
  /// About the files in the folder of small images that belong to no large one.
  std::string notice_of_small() const {
    LeftOut left_out;
    for (auto& file : list_images(small_folder_, left_out)) {
      if (!std::ranges::binary_search(large_.files, file)) left_out.add(std::move(file));
    }
    return joined_notices({left_out.notice(small_folder_, std::ssize(large_.files)),
                           reader_.notice(small_folder_, large_.files)});
  }

  int64_t scale_;
  ImageList large_;
  std::string small_folder_;  ///< Empty when the small images are made from the large images.
  ImageReader reader_;
};

}  // namespace

ImageList images_in(const std::string& folder) {
  ImageList images{.folder = folder, .files = {}};
  images.files = list_images(images.folder, images.left_out);
  if (images.files.empty()) {
    throw Error(fmt::format("{}: holds no images; they are looked for as .png, .jpg or .jpeg",
                            images.folder));
  }
  return images;
}

std::string ImageList::notice(const ImageReader& reader) const {
  return joined_notices({left_out.notice(folder, std::ssize(files)), reader.notice(folder, files)});
}

void check_same_names(const Config& params, std::string_view key, const std::string& folder,
                      std::string_view other_key, const ImageList& images) {
  for (const auto& file : images.files) {
    if (std::filesystem::exists(folder + "/" + file)) continue;
    throw params.error(
        key, fmt::format("{}/{}: there is no such file, and there is one of that name in {}",
                         folder, file, other_key));
  }
}

std::unique_ptr<PairSource> make_scaled_pairs(PairOptions options, const Config& config) {
  if (options.dataset == nullptr) return std::make_unique<ScaledFolders>(options, config);
  return std::make_unique<ReducedExamples>(std::move(options));
}

}  // namespace stepop
