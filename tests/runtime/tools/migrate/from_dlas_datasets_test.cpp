// Datasets of DL-Art-School that views of others stand for: what their examples hold.
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/pictures/image_file.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/migrate/from_dlas_datasets.h"
#include "tests/dataset_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace from_dlas_datasets_test {

struct Translated {
  Value dataset;
  std::string notes;

  std::unique_ptr<Dataset> built() const { return dataset_of(flow_yaml(dataset)); }
};

Translated translated(const std::string& yaml) {
  TranslatedConfig made;
  translate_dlas_dataset("datasets/train", "datasets/train", parse_yaml(yaml, {"a.yml", 0}), made);
  Translated result;
  if (const Value* dataset = made.config.find("datasets/train")) result.dataset = *dataset;
  for (const auto& note : made.notes) result.notes += note.key + ": " + note.text + "\n";
  return result;
}

std::string keys_of(const std::string& yaml) {
  const auto dataset = translated(yaml).built();
  return example_of(*dataset, 0).tensors.key_list();
}

/// Pictures of noise: `a/0.png`, ..., of several sizes.
void write_pictures(const ScratchFolder& folder, int count) {
  for (int i = 0; i < count; ++i) {
    folder.write(fmt::format("pictures/a/{}.png", i),
                 encode_png(at::randint(0, 256, {30 + 2 * i, 24, 3}, at::kByte)));
  }
}

/// 12 high, 8 wide, the same when it is mirrored: 15 y + 30 c + 8 min(x, 7 - x).
at::Tensor smooth_picture() {
  at::Tensor picture = at::empty({12, 8, 3}, at::kByte);
  auto* pixel = picture.mutable_data_ptr<uint8_t>();
  for (int y = 0; y < 12; ++y) {
    for (int x = 0; x < 8; ++x) {
      for (int c = 0; c < 3; ++c) {
        *pixel++ = static_cast<uint8_t>(15 * y + 30 * c + 8 * std::min(x, 7 - x));
      }
    }
  }
  return picture;
}

// a = np.fromfunction of the above; im = Image.fromarray(a).resize((4, 6), Image.BILINEAR)
// .crop((0, 1, 4, 5)), which is what Resize(4) and CenterCrop(4) of torchvision call; then
// (np.asarray(im) / 255 - mean) / std. Pillow 13.0.
TEST_CASE("torch_dataset gives a folder's pictures as torchvision's transforms do") {
  const ScratchFolder folder;
  folder.write("pictures/a/0.png", encode_png(smooth_picture()));
  folder.write("pictures/b/0.png", encode_png(smooth_picture()));
  const Translated made = translated(fmt::format(
      "{{mode: torch_dataset, dataset: imagefolder, image_size: 4, kwargs: {{root: {}}}}}",
      folder.path("pictures")));
  CHECK(made.notes.empty());
  const Example example = example_of(*made.built(), 1);
  CHECK(example.tensors.key_list() == "hq, labels, lq");
  CHECK(example.tensors.at("labels").item<int64_t>() == 1);
  const at::Tensor hq = example.tensors.at("hq");
  CHECK(at::equal(hq, example.tensors.at("lq")));
  const at::Tensor red =
      at::tensor({-1.3644, -1.1418, -0.8507, -0.6281, -0.3369, -0.1143, 0.1768, 0.3994})
          .view({4, 2});
  const at::Tensor off = (hq[0].narrow(1, 0, 2) - red).abs();
  // Pillow rounds to 8 bits twice, 0.017 here. The first and last row see what is beyond the
  // square.
  CHECK(off.narrow(0, 1, 2).max().item<double>() < 0.018);
  CHECK(off.max().item<double>() < 0.07);
  CHECK(std::abs(hq[1][1][0].item<double>() + 0.2150) < 0.018);
  CHECK(std::abs(hq[2][1][1].item<double>() - 0.7576) < 0.018);
}

TEST_CASE("torch_dataset of CIFAR and MNIST names their folders, with a part of the examples") {
  const auto inner = [](const std::string& more) {
    const Translated made = translated("{mode: torch_dataset, image_size: 32, " + more + "}");
    const Value* dataset = &made.dataset;
    std::string text;
    for (; dataset != nullptr; dataset = dataset->find("dataset")) {
      text += dataset->find("class")->as_text() + " ";
      if (const Value* range = dataset->find("range")) text += flow_yaml(*range) + " ";
      if (const Value* path = dataset->find("path")) {
        text += path->as_text() + " " + dataset->find("split")->as_text() + " ";
      }
    }
    return text + made.notes;
  };
  CHECK(inner("dataset: cifar100, kwargs: {root: d/, train: false}, offset: 100") ==
        "Augment Map Standardized Augment Subset [100, 10000] Cifar d/cifar-100-python test ");
  CHECK(inner("dataset: cifar10, kwargs: {root: d, download: true}, fixed_len: 50") ==
        "Augment Map Standardized Augment Subset [0, 50] Cifar d/cifar-10-batches-py train "
        "datasets/train/kwargs/download: left out: nothing is downloaded\n");
  CHECK(inner("dataset: fmnist, kwargs: {root: d}")
            .starts_with("Augment Map Augment Mnist d/FashionMNIST train datasets/train/dataset: "
                         "is not normalized"));
}

TEST_CASE("stylegan2 gives the square in the middle, or with aug_prob a part of it") {
  const ScratchFolder folder;
  folder.write("pictures/deep/0.png", encode_png(smooth_picture()));
  const auto of = [&](double chance) {
    return example_of(*translated(fmt::format("{{mode: stylegan2, target_size: 8, aug_prob: {}, "
                                              "path: {}}}",
                                              chance, folder.path("pictures")))
                           .built(),
                      0);
  };
  const Example whole = of(0);
  CHECK(whole.tensors.key_list() == "hq, lq");
  const at::Tensor square = smooth_picture().narrow(0, 2, 8).permute({2, 0, 1}).to(at::kFloat);
  CHECK((whole.tensors.at("hq") - (square / 127.5 - 1)).abs().max().item<double>() < 1e-5);
  CHECK(at::equal(whole.tensors.at("hq"), whole.tensors.at("lq")));
  CHECK_FALSE(at::equal(of(1).tensors.at("hq"), whole.tensors.at("hq")));
}

TEST_CASE("random_aug_wrapper changes hq, and lq is the same") {
  const ScratchFolder folder;
  write_pictures(folder, 1);
  const auto made =
      translated(fmt::format("{{mode: random_aug_wrapper, crop_size: 12, dataset: "
                             "{{mode: imagefolder, scale: 2, target_size: 24, paths: "
                             "{}}}}}",
                             folder.path("pictures")));
  const Example example = example_of(*made.built(), 0);
  CHECK(example.tensors.key_list() == "hq, lq");
  CHECK(example.tensors.at("hq").sizes() == at::IntArrayRef({3, 12, 12}));
  CHECK(at::equal(example.tensors.at("hq"), example.tensors.at("lq")));
}

TEST_CASE("combined names the keys of all but default by their datasets") {
  const ScratchFolder folder;
  write_pictures(folder, 2);
  const std::string path = folder.path("pictures");
  CHECK(
      keys_of(fmt::format("{{mode: combined, scale: 2, default: {{mode: imagefolder, target_size: "
                          "8, paths: {0}}}, x: {{mode: byol_dataset, crop_size: 8, key2: hq, "
                          "dataset: {{mode: stylegan2, target_size: 8, path: {0}}}}}}}",
                          path)) == "hq, lq, corruption_entropy, x_hq, x_lq, x_aug1, x_aug2");
  // The scale of `combined` counts within it.
  const auto dataset = translated(fmt::format("{{mode: combined, scale: 2, x: {{mode: imagefolder, "
                                              "scale: 4, target_size: 8, paths: {}}}}}",
                                              path))
                           .built();
  CHECK(example_of(*dataset, 0).tensors.at("x_lq").size(-1) == 4);
}

TEST_CASE("unsupervised_audio gives clips of one length, from one folder or several") {
  const auto of = [](const std::string& more) {
    const Value made = *translated("{mode: unsupervised_audio, cache_path: c, " + more + "}")
                            .dataset.find("dataset");
    return flow_yaml(made);
  };
  CHECK(of("path: a, pad_to_seconds: 2") ==
        "{class: Sound, path: a, classes: [], rate: 22050, seconds: 2}");
  CHECK(of("path: [a, b], sampling_rate: 16000, pad_to_samples: 8000") ==
        "{class: Concat, datasets: [{class: Sound, path: a, classes: [], rate: 16000, seconds: "
        "0.5}, {class: Sound, path: b, classes: [], rate: 16000, seconds: 0.5}]}");
  CHECK(of("path: [a]") ==
        "{class: Concat, datasets: [{class: Sound, path: a, classes: [], rate: 22050}]}");
  CHECK(
      translated("{mode: unsupervised_audio, path: a}").notes.find("pad_to_samples: is missing") !=
      std::string::npos);
}

}  // namespace from_dlas_datasets_test
}  // namespace stepop
