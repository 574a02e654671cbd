#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "runtime/core/formats/idx_file.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/data/class_numbers.h"
#include "runtime/data/dataset.h"
#include "runtime/data/row_writer.h"

namespace stepop {
namespace {

/// uint8 [N, C, H, W], contiguous.
at::Tensor read_images(const std::string& path) {
  at::Tensor images = read_idx(path);
  const bool is_grey = images.dim() == 3;
  if (images.scalar_type() != at::kByte || (!is_grey && images.dim() != 4)) {
    throw Error(fmt::format("{}: images are uint8 [N, H, W] or [N, H, W, C], found {}", path,
                            describe_tensor(images)));
  }
  if (images.numel() == 0) {
    throw Error(fmt::format("{}: holds no images: {}", path, describe_tensor(images)));
  }
  return is_grey ? images.unsqueeze(1) : images.permute({0, 3, 1, 2}).contiguous();
}

/// int64 [N], contiguous.
at::Tensor read_labels(const std::string& path) {
  const at::Tensor stored = read_idx(path);
  if (stored.dim() != 1 || stored.is_floating_point()) {
    throw Error(fmt::format("{}: labels are whole numbers [N], found {}{}", path,
                            describe_tensor(stored),
                            stored.dim() > 2 ? "; are images and labels exchanged?" : ""));
  }
  at::Tensor labels = stored.to(at::kLong);
  const auto* values = labels.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < labels.size(0); ++i) {
    if (values[i] >= 0) continue;
    throw Error(fmt::format("{}: label {} is {}; classes count from 0", path, i, values[i]));
  }
  return labels;
}

/// Images and labels in MNIST's IDX format, plain or gzip. The images stay in memory as bytes.
///
/// An example holds `image`, float [C, H, W] in [-1, 1], and `class`,
/// int64 []. Throws Error with the file's name when a file is damaged, of another type or empty,
/// and when the two files differ in N.
class Idx : public Dataset, public RowWriter {
 public:
  struct Params {
    InputFile images;
    InputFile labels;

    void declare(Parameters& p) {
      p.require("images", images, "file of uint8 [N, H, W] or [N, H, W, C]");
      p.require("labels", labels, "file of whole numbers [N], none negative");
    }
  };

  Idx(const Params& params, const Config& config)
      : Idx(config, params.images.text, params.labels.text) {}

  int64_t size() const override { return labels_.size(0); }
  Example get(int64_t index, Random& random) const override;
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override;
  std::optional<BatchRows> rows_for(int64_t count) const override;
  void write_row(int64_t index, Random& random, int64_t row, BatchRows& rows) const override;
  /// The classes, int64 [N], for the key "class".
  at::Tensor labels(std::string_view key) const override;
  std::vector<std::string> label_keys() const override { return {"class"}; }
  std::string notice() const override { return plain_numbers_notice(params_, "class"); }

 protected:
  Idx(const Config& params, const std::string& images, const std::string& labels);

 private:
  /// Writes the image at `index` as C * H * W floats.
  void write_image(int64_t index, float* values) const;

  Config params_;
  at::Tensor images_;  ///< uint8 [N, C, H, W], contiguous.
  at::Tensor labels_;  ///< int64 [N], contiguous.
};

Idx::Idx(const Config& params, const std::string& images, const std::string& labels)
    : params_(params) {
  images_ = read_images(images);
  labels_ = read_labels(labels);
  if (images_.size(0) != labels_.size(0)) {
    throw Error(fmt::format("{} holds {} images, {} holds {} labels; each image needs one", images,
                            images_.size(0), labels, labels_.size(0)));
  }
}

void Idx::write_image(int64_t index, float* values) const {
  check_index(index, size());
  const int64_t pixels = images_.stride(0);
  from_bytes(images_.const_data_ptr<uint8_t>() + index * pixels, values,
             static_cast<size_t>(pixels));
}

Example Idx::get(int64_t index, Random& /*random*/) const {
  at::Tensor image = at::empty(images_.sizes().slice(1), at::kFloat);
  write_image(index, image.mutable_data_ptr<float>());
  const int64_t label = labels_.const_data_ptr<int64_t>()[index];
  return {.tensors = {{"image", image}, {"class", at::scalar_tensor(label, at::kLong)}},
          .texts = {}};
}

std::optional<Batch> Idx::get_batch(std::span<const int64_t> indices,
                                    std::span<Random> /*randoms*/) const {
  std::vector<int64_t> shape = images_.sizes().vec();
  shape[0] = static_cast<int64_t>(indices.size());
  at::Tensor images = at::empty(shape, at::kFloat);
  at::Tensor labels = at::empty({shape[0]}, at::kLong);
  auto* pixels = images.mutable_data_ptr<float>();
  auto* classes = labels.mutable_data_ptr<int64_t>();
  const auto* all_classes = labels_.const_data_ptr<int64_t>();
  for (const int64_t index : indices) {
    write_image(index, pixels);
    pixels += images.stride(0);
    *classes++ = all_classes[index];
  }
  return Batch({{"image", images}, {"class", labels}}, {},
               std::vector<int64_t>(indices.begin(), indices.end()));
}

std::optional<BatchRows> Idx::rows_for(int64_t count) const {
  std::vector<int64_t> shape = images_.sizes().vec();
  shape[0] = count;
  return BatchRows{.tensors = {{"image", at::empty(shape, at::kFloat)},
                               {"class", at::empty({count}, at::kLong)}},
                   .texts = {}};
}

void Idx::write_row(int64_t index, Random& /*random*/, int64_t row, BatchRows& rows) const {
  write_image(index, rows.at<float>("image", row));
  *rows.at<int64_t>("class", row) = labels_.const_data_ptr<int64_t>()[index];
}

at::Tensor Idx::labels(std::string_view key) const {
  return key == "class" ? labels_ : at::Tensor();
}

/// MNIST, FashionMNIST or another data set with the same file names, `train-images-idx3-ubyte`,
/// `t10k-labels-idx1-ubyte`, ..., as downloaded (.gz) or unpacked. The files are in the folder
/// itself or in a folder `raw` below it, as torchvision leaves them. The examples are the same as
/// those of Idx.
class Mnist : public Idx {
 public:
  struct Params {
    std::string split = "train";
    InputFolder path;

    void declare(Parameters& p) {
      p.require("path", path, "folder of train-images-idx3-ubyte.gz and others");
      p.add("split", split, "train or test", one_of({"train", "test"}));
    }
  };

  Mnist(const Params& params, const Config& config)
      : Idx(config, file_of(params, config, "images-idx3-ubyte"),
            file_of(params, config, "labels-idx1-ubyte")) {}

 private:
  static std::string file_of(const Params& params, const Config& config, const std::string& what) {
    const std::string& folder = params.path.text;
    const std::string name = (params.split == "train" ? "train-" : "t10k-") + what;
    for (const char* below : {"/", "/raw/", "/MNIST/raw/", "/FashionMNIST/raw/"}) {
      for (const char* ending : {".gz", ""}) {
        std::string path = folder + below + name + ending;
        std::error_code ignored;
        if (std::filesystem::is_regular_file(path, ignored)) return path;
      }
    }
    throw config.error("path",
                       fmt::format("{} has no {}.gz, and no folder raw with it", folder, name));
  }
};

STEPOP_REGISTER_DATASET(Mnist, {"MNIST or FashionMNIST from the folder of their files."});

STEPOP_REGISTER_DATASET(Idx, {"Images with labels in MNIST's IDX format, plain or gzip."});

}  // namespace
}  // namespace stepop
