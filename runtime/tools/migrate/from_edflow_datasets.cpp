#include "runtime/tools/migrate/from_edflow_datasets.h"

#include <algorithm>
#include <array>

namespace stepop {
namespace {

constexpr std::array kShipped = {
    ShippedDataset{"mnist.MNISTTrain",
                   "{class: Idx, images: data/train-images-idx3-ubyte.gz, labels: "
                   "data/train-labels-idx1-ubyte.gz}",
                   "put the four files of the data set's site into data/", true},
    ShippedDataset{"mnist.MNISTTest",
                   "{class: Idx, images: data/t10k-images-idx3-ubyte.gz, labels: "
                   "data/t10k-labels-idx1-ubyte.gz}",
                   "put the four files of the data set's site into data/", true},
    ShippedDataset{"cifar.CIFAR10Train",
                   "{class: Cifar, path: data/cifar-10-python.tar.gz, split: train}",
                   "put the archive of the data set's site into data/", true},
    ShippedDataset{"cifar.CIFAR10Test",
                   "{class: Cifar, path: data/cifar-10-python.tar.gz, split: test}",
                   "put the archive of the data set's site into data/", true},
    ShippedDataset{"celeba.CelebATrain", "{class: CelebA, path: data/celeba, split: train}",
                   "put the lists and img_align_celeba.zip into data/celeba", false},
    ShippedDataset{"celeba.CelebAVal", "{class: CelebA, path: data/celeba, split: validation}",
                   "put the lists and img_align_celeba.zip into data/celeba", false},
    ShippedDataset{"celeba.CelebATest", "{class: CelebA, path: data/celeba, split: test}",
                   "put the lists and img_align_celeba.zip into data/celeba", false},
    ShippedDataset{"meta.MetaDataset", "{class: Meta, path: '{}'}",
                   "path is the folder of meta.yaml", false},
    ShippedDataset{"prjoti.Prjoti", "{class: Meta, path: '{}'}", "path is the folder of meta.yaml",
                   false},
    ShippedDataset{
        "prjoti.Prjoti_VUNet_train",
        "{class: PosePairs, size: 256, image: crop, keypoints: kps_rel, relative: true, "
        "dataset: {class: Subset, fraction: 0.9, dataset: {class: Meta, path: '{}', keys: "
        "[crop, kps_rel]}}}",
        "the path of Meta is the folder of meta.yaml", false},
    ShippedDataset{
        "prjoti.Prjoti_VUNet_val",
        "{class: PosePairs, size: 256, image: crop, keypoints: kps_rel, relative: true, "
        "pairs: fixed, dataset: {class: Subset, fraction: [0.9, 1], dataset: {class: Meta, "
        "path: '{}', keys: [crop, kps_rel]}}}",
        "the path of Meta is the folder of meta.yaml", false},
};

/// The last two parts of an import path; FashionMNIST has the same files as MNIST.
std::string shipped_name(const std::string& import_path) {
  const size_t last = import_path.rfind('.');
  const size_t before =
      last == 0 || last == std::string::npos ? last : import_path.rfind('.', last - 1);
  std::string name = before == std::string::npos ? import_path : import_path.substr(before + 1);
  for (const std::string_view word : {"fashion", "Fashion"}) {
    if (const size_t at = name.find(word); at != std::string::npos) name.erase(at, word.size());
  }
  return name;
}

}  // namespace

const ShippedDataset* find_shipped(const std::string& import_path) {
  if (!import_path.starts_with("edflow.") && !import_path.starts_with("VUNet.")) return nullptr;
  const std::string name = shipped_name(import_path);
  const auto* found = std::ranges::find_if(kShipped, [&](const ShippedDataset& each) {
    return each.path == name || each.path == name + "Train";
  });
  return found == kShipped.end() ? nullptr : found;
}

}  // namespace stepop
