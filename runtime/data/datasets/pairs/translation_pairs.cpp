#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/resize.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/datasets/pairs/pair_source.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

/// The common part of all sources: which image is the input, and the size of the images.
class TranslationPairs : public PairSource {
 public:
  explicit TranslationPairs(const PairOptions& options)
      : load_size_(options.load_size.value_or(0)), is_swapped_(options.direction == "BtoA") {}

 protected:
  /// The image in a file, for `pair_of`.
  at::Tensor read(const ImageReader& reader, const std::string& path) const {
    return load_size_ > 0 ? reader.read_stored(path) : reader.read(path);
  }

  /// The pair, swapped and resized as the config says. `where` names both images in messages.
  Example pair_of(at::Tensor a, at::Tensor b, const std::string& where) const {
    a = resized(a);
    b = resized(b);
    if (a.sizes().slice(1) != b.sizes().slice(1)) {
      throw Error(fmt::format(
          "{}: expected two images of one size, found {} and {}; \"load_size: 256\" makes them so",
          where, describe_tensor(a), describe_tensor(b)));
    }
    if (is_swapped_) std::swap(a, b);
    return {.tensors = {{"input", a}, {"target", b}}, .texts = {}};
  }

  /// The resized image in [-1, 1]. Bytes are resized as bytes, as in Pillow.
  at::Tensor resized(at::Tensor image) const {
    const bool is_stored = image.scalar_type() == at::kByte;
    if (load_size_ > 0 && (image.size(1) != load_size_ || image.size(2) != load_size_)) {
      image = at::_upsample_bicubic2d_aa(image.unsqueeze(0), {load_size_, load_size_},
                                         /*align_corners=*/false)
                  .squeeze(0);
      if (!is_stored) image.clamp_(-1, 1);
    }
    return is_stored ? from_stored_image(image) : image;
  }

  at::Tensor resized_mask(const at::Tensor& mask) const {
    return load_size_ > 0 ? resize_mask(mask, {load_size_, load_size_}) : mask;
  }

 private:
  int64_t load_size_;  ///< 0 keeps the stored size.
  bool is_swapped_;
};

class SideBySide : public TranslationPairs {
 public:
  explicit SideBySide(const PairOptions& options)
      : TranslationPairs(options),
        images_(images_in(options.folder->text)),
        reader_(options.images) {}

  int64_t size() const override { return static_cast<int64_t>(images_.files.size()); }

  Example get(int64_t index, Random& /*random*/) const override {
    const std::string path = images_.path_of(index);
    const at::Tensor both = read(reader_, path);
    const int64_t width = both.size(2);
    if (width % 2 != 0) {
      throw Error(fmt::format(
          "{}: expected two images side by side, of an even width together, found {} x {} pixels",
          path, width, both.size(1)));
    }
    Example pair =
        pair_of(both.narrow(2, 0, width / 2), both.narrow(2, width / 2, width / 2), path);
    pair.texts.set("path", images_.files[static_cast<size_t>(index)]);
    return pair;
  }

  std::string place_of(int64_t index) const override { return images_.place_of(index); }
  std::string notice() const override { return images_.notice(reader_); }

 private:
  ImageList images_;
  ImageReader reader_;
};

class TwoFolders : public TranslationPairs {
 public:
  TwoFolders(const PairOptions& options, const Config& config)
      : TranslationPairs(options),
        inputs_(images_in(options.input->text)),
        targets_(images_in(options.target->text)),
        reader_(options.images) {
    check_same_names(config, "target", targets_.folder, "input", inputs_);
    check_same_names(config, "input", inputs_.folder, "target", targets_);
  }

  int64_t size() const override { return static_cast<int64_t>(inputs_.files.size()); }

  Example get(int64_t index, Random& /*random*/) const override {
    const std::string input = inputs_.path_of(index);
    const std::string target = targets_.path_of(index);
    Example pair = pair_of(read(reader_, input), read(reader_, target),
                           fmt::format("{} and {}", input, target));
    pair.texts.set("path", inputs_.files[static_cast<size_t>(index)]);
    return pair;
  }

  std::string place_of(int64_t index) const override { return inputs_.place_of(index); }
  std::string notice() const override {
    return joined_notices({inputs_.notice(reader_), targets_.notice(reader_)});
  }

 private:
  ImageList inputs_;
  ImageList targets_;
  ImageReader reader_;
};

/// Images and their masks, files of the same name up to the ending. The masks are the examples.
class MaskedImages : public TranslationPairs {
 public:
  MaskedImages(const PairOptions& options, const Config& config)
      : TranslationPairs(options), masks_(images_in(options.mask->text)), reader_(options.images) {
    const ImageList images = images_in(options.input->text);
    std::map<std::string, std::string> by_name;
    for (const auto& file : images.files) by_name.emplace(name_of(file), file);
    for (const auto& file : masks_.files) {
      const auto found = by_name.find(name_of(file));
      if (found == by_name.end()) {
        throw config.error("input", fmt::format("{} has no image {}.jpg or .png for the mask {}/{}",
                                                images.folder, name_of(file), masks_.folder, file));
      }
      images_.push_back(images.folder + "/" + found->second);
    }
    const std::set<std::string> used(images_.begin(), images_.end());
    if (const size_t left = images.files.size() - used.size(); left > 0) {
      notice_ = fmt::format("{}: left out {} without a mask in {}", images.folder,
                            counted(static_cast<int64_t>(left), "image"), masks_.folder);
    }
  }

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }

  Example get(int64_t index, Random& /*random*/) const override {
    const std::string& path = images_[static_cast<size_t>(index)];
    const at::Tensor image = resized(read(reader_, path));
    const at::Tensor mask = resized_mask(reader_.read_mask(masks_.path_of(index)));
    if (image.sizes().slice(1) != mask.sizes()) {
      throw Error(fmt::format(
          "{} and {}: expected an image and a mask of one size, found {} and {}; \"load_size: "
          "256\" makes them so",
          path, masks_.path_of(index), describe_tensor(image), describe_tensor(mask)));
    }
    return {.tensors = {{"input", image}, {"mask", mask}},
            .texts = {{"path", masks_.files[static_cast<size_t>(index)]}}};
  }

  std::string place_of(int64_t index) const override { return masks_.place_of(index); }
  std::string notice() const override {
    return joined_notices(
        {notice_, reader_.notice("", images_), reader_.notice(masks_.folder, masks_.files)});
  }

 private:
  /// The file's path without its ending.
  static std::string name_of(const std::string& file) {
    return std::filesystem::path(file).replace_extension().string();
  }

  ImageList masks_;
  std::vector<std::string> images_;  ///< The path of each mask's image.
  ImageReader reader_;
  std::string notice_;
};

class PairsOfDataset : public TranslationPairs {
 public:
  explicit PairsOfDataset(PairOptions options)
      : TranslationPairs(options), dataset_(std::move(options.dataset)) {}

  std::string notice() const override { return dataset_->notice(); }

  int64_t size() const override { return dataset_->size(); }

  Example get(int64_t index, Random& random) const override {
    const Example example = dataset_->get(index, random);
    Example pair = pair_of(image_of(example, "input"), image_of(example, "target"),
                           fmt::format("PairedImages: example {} of its dataset", index));
    const std::string* path = example.texts.find("path");
    if (path != nullptr) pair.texts.set("path", *path);
    return pair;
  }

  std::string place_of(int64_t) const override { return ""; }

 private:
  static at::Tensor image_of(const Example& example, const char* key) {
    const at::Tensor* image = example.tensors.find(key);
    if (image != nullptr && image->dim() == 3 && image->scalar_type() == at::kFloat) return *image;
    throw Error(fmt::format(
        "PairedImages: expected a float32 image [C, H, W] under \"{}\", found {}; the dataset "
        "has: {}",
        key, image == nullptr ? "none" : describe_tensor(*image), example.tensors.key_list()));
  }

  std::unique_ptr<Dataset> dataset_;
};

}  // namespace

std::unique_ptr<PairSource> make_translation_pairs(PairOptions options, const Config& config) {
  if (options.dataset != nullptr) return std::make_unique<PairsOfDataset>(std::move(options));
  if (options.folder) return std::make_unique<SideBySide>(options);
  if (options.mask) return std::make_unique<MaskedImages>(options, config);
  return std::make_unique<TwoFolders>(options, config);
}

}  // namespace stepop
