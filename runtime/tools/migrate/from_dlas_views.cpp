// Datasets of DL-Art-School that are views of others here: BYOL's two views, random_aug_wrapper,
// combined, torch_dataset, stylegan2, unsupervised_audio.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/tools/migrate/from_dlas_dataset.h"

namespace stepop {
namespace {

using Keys = std::vector<std::string>;

/// The largest square in the middle, resized, as Resize and CenterCrop of torchvision give it: no
/// other part has the ratio 1 and the whole area, so that the one in the middle is taken.
constexpr const char* kMiddle =
    "{{class: RandomResizedCrop, size: {}, scale: [1, 1], ratio: [1, 1]}}";

/// The side of the examples at `key`; 0, with a note, without one.
int64_t side_at(DlasDataset& dataset, std::string_view key) {
  const Value* side = dataset.find(key);
  if (side != nullptr && side->is_int()) return side->as_int();
  dataset.note(key, "is missing: pictures of a batch need one size");
  return 0;
}

std::string yaml_of(const Keys& augmentations) {
  std::string text;
  for (const auto& one : augmentations) text += (text.empty() ? "" : ", ") + one;
  return "[" + text + "]";
}

/// What a dataset of torchvision is here.
struct TorchDataset {
  std::string_view name;
  std::string_view kind;
  std::string_view folder;  ///< Where torchvision looks for it, below `root`.
  int64_t train;            ///< The number of training examples, 0: as many as there are files.
  int64_t test;
};

constexpr std::array<TorchDataset, 6> kTorchDatasets = {{
    {"mnist", "Mnist", "/MNIST", 60'000, 10'000},
    {"fmnist", "Mnist", "/FashionMNIST", 60'000, 10'000},
    {"cifar10", "Cifar", "/cifar-10-batches-py", 50'000, 10'000},
    {"cifar100", "Cifar", "/cifar-100-python", 50'000, 10'000},
    {"imagenet", "ImageFolder", "", 1'281'167, 50'000},
    {"imagefolder", "ImageFolder", "", 0, 0},
}};

/// Whether `kwargs` of a torch_dataset name its training part; with notes for what is not here.
bool is_training_part(DlasDataset& dataset, const Value& kwargs) {
  bool is_training = true;
  for (const auto& [key, value] : kwargs.as_map()) {
    if (key == "train") is_training = value != Value(false);
    if (key == "split") is_training = value != Value("val");
    if (key == "download" && value == Value(true)) {
      dataset.note("kwargs/download", "left out: nothing is downloaded");
    } else if (key != "root" && key != "train" && key != "split" && key != "download") {
      dataset.note("kwargs/" + key, "no counterpart");
    }
  }
  return is_training;
}

/// `offset` and `fixed_len`, where the examples begin and end.
void take_range(DlasDataset& dataset, int64_t count) {
  const Value* begin = dataset.find("offset");
  const Value* end = dataset.find("fixed_len");
  const int64_t first = begin != nullptr && begin->is_int() ? begin->as_int() : 0;
  if (end != nullptr && end->is_int()) count = end->as_int();
  if (first == 0 && end == nullptr) return;
  if (count == 0) {
    return dataset.note("offset", fmt::format("left out: the view Subset with range: [{}, END], "
                                              "the number of files",
                                              first));
  }
  dataset.set_view(fmt::format("{{class: Subset, range: [{}, {}]}}", first, count));
}

}  // namespace

std::vector<std::string> take_dlas_byol(DlasDataset& dataset) {
  dataset.set("class", "Augment");
  dataset.set("views/aug1", dataset.text_at("key1", "hq"));
  dataset.set("views/aug2", dataset.text_at("key2", "lq"));
  const Value* size = dataset.find("crop_size");
  if (size == nullptr) dataset.note("crop_size", "is missing: RandomResizedCrop needs its size");
  Keys list = {"{class: RandomHorizontalFlip}", "{class: RandomResizedCrop}"};
  if (!dataset.is_true("for_sr")) {
    list.emplace_back(
        "{class: ColorJitter, brightness: 0.8, contrast: 0.8, saturation: 0.8, hue: 0.2, p: 0.8}");
    list.emplace_back("{class: RandomGrayscale, p: 0.2}");
    list.emplace_back("{class: GaussianBlur, kernel_size: 3, sigma: [1.5, 1.5], p: 0.1}");
  }
  Value augmentations = parse_yaml(yaml_of(list), {});
  if (size != nullptr) augmentations.as_list()[1].as_map().set("size", *size);
  dataset.set("augmentations", std::move(augmentations));
  const Value* inner = dataset.find("dataset");
  if (inner == nullptr || !inner->is_map()) {
    dataset.note("dataset", "is missing");
    return {};
  }
  Keys keys = dataset.translate_inner("dataset", *inner, "dataset");
  keys.insert(keys.end(), {"aug1", "aug2"});
  return keys;
}

std::vector<std::string> take_dlas_random_aug(DlasDataset& dataset) {
  const Value* inner = dataset.find("dataset");
  const int64_t side = side_at(dataset, "crop_size");
  if (inner == nullptr || !inner->is_map()) {
    dataset.note("dataset", "is missing");
    return {};
  }
  if (dataset.is_true("includes_labels")) {
    dataset.note("includes_labels", "left out: labels of patches are not here");
  }
  dataset.set_view("{class: Augment, views: {lq: hq}}");  // a copy
  dataset.set_view(fmt::format(
      "{{class: Augment, key: hq, augmentations: {}}}",
      yaml_of({"{class: ColorJitter, brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.2, p: "
               "0.8}",
               "{class: RandomGrayscale, p: 0.2}",
               "{class: GaussianBlur, kernel_size: 3, sigma: [1.5, 1.5], p: 0.1}",
               "RandomHorizontalFlip",
               fmt::format("{{class: RandomResizedCrop, size: {}}}", side)})));
  dataset.set_view("{class: Map, function: {class: select, keys: [hq]}}");
  dataset.translate_inner("dataset", *inner, "");
  return {"hq", "lq"};
}

std::vector<std::string> take_dlas_combined(DlasDataset& dataset) {
  const Value* scale = dataset.find("scale");
  dataset.set("class", "Map");
  dataset.set("function/class", "rename");
  dataset.set("function/keys", Value());
  dataset.set("dataset/class", "Zip");
  Value::Map names;
  Keys keys;
  for (const auto& [name, inner] : dataset.value().as_map()) {
    if (!inner.is_map()) continue;
    Value copy = inner;
    if (scale != nullptr) copy.as_map().set("scale", *scale);
    dataset.find(name);
    Value::Map renamed;
    for (const auto& key : dataset.translate_inner(name, copy, "dataset/datasets/" + name)) {
      keys.push_back(name == "default" ? key : name + "_" + key);
      renamed.set(key, Value(keys.back()));
    }
    if (!renamed.empty()) names.set(name, Value(std::move(renamed)));
  }
  dataset.set("function/keys", Value(std::move(names)));
  dataset.note("mode",
               "its datasets need as many examples: there, a shorter one begins anew; Concat takes "
               "one several times, Subset a part");
  return keys;
}

std::vector<std::string> take_dlas_torch(DlasDataset& dataset) {
  const std::string name = dataset.text_at("dataset");
  const auto* const found = std::ranges::find(kTorchDatasets, name, &TorchDataset::name);
  if (found == kTorchDatasets.end()) {
    dataset.note("dataset",
                 fmt::format("expected mnist, fmnist, cifar10, cifar100, imagenet or imagefolder, "
                             "found {}",
                             name.empty() ? "none" : name));
    return {};
  }
  const Value* kwargs = dataset.find("kwargs");
  const Value* root = kwargs == nullptr ? nullptr : find_in_map(*kwargs, "root");
  if (root == nullptr || !root->is_text()) {
    dataset.note("kwargs/root", "is missing: the folder of the files");
    return {};
  }
  const bool is_training = is_training_part(dataset, *kwargs);
  const int64_t side = side_at(dataset, "image_size");
  const bool is_folder = found->kind == "ImageFolder";
  Keys keys = {"hq", "lq", "labels"};
  if (name == "cifar100") keys.emplace_back("coarse_labels");
  dataset.set_view("{class: Augment, views: {lq: hq}}");  // a copy
  dataset.set_view(
      fmt::format("{{class: Map, function: {{class: rename, keys: {{image: hq, class: "
                  "labels{}}}}}}}",
                  name == "cifar100" ? ", coarse: coarse_labels" : ""));
  if (found->kind == "Mnist") {
    dataset.note("dataset",
                 "is not normalized: its pictures have one channel, for which the three means of "
                 "ImageNet fail there");
  } else {
    // ImageNet's means and deviations, of pictures in [-1, 1].
    dataset.set_view(
        "{class: Standardized, keys: [image], mean: {image: [-0.03, -0.088, -0.188]}, std: {image: "
        "[0.458, 0.448, 0.45]}}");
  }
  const std::string crop = dataset.is_true("random_crop")
                               ? fmt::format("{{class: RandomResizedCrop, size: {}}}", side)
                           : is_folder ? fmt::format(fmt::runtime(kMiddle), side)
                                       : fmt::format("{{class: Resize, size: {}}}", side);
  dataset.set_view(fmt::format("{{class: Augment, augmentations: {}}}",
                               yaml_of({crop, "RandomHorizontalFlip"})));
  take_range(dataset, is_training ? found->train : found->test);
  std::string path = root->as_text();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  path += name == "imagenet" ? (is_training ? "/train" : "/val") : std::string(found->folder);
  dataset.set("class", std::string(found->kind));
  dataset.set("path", path);
  if (is_folder) {
    dataset.set("channels", int64_t{3});
  } else {
    dataset.set("split", is_training ? "train" : "test");
  }
  return keys;
}

std::vector<std::string> take_dlas_stylegan2(DlasDataset& dataset) {
  const int64_t side = side_at(dataset, "target_size");
  dataset.set_view("{class: Augment, views: {lq: hq}}");  // a copy
  dataset.set_view("{class: Map, function: {class: rename, keys: {image: hq}}}");
  Keys list;
  const Value* chance = dataset.find("aug_prob");
  if (chance != nullptr && (chance->is_float() || chance->is_int()) &&
      *chance != Value(int64_t{0})) {
    list.push_back(fmt::format(
        "{{class: RandomResizedCrop, size: {}, scale: [0.5, 1], ratio: [0.98, 1.02], p: {}}}", side,
        chance->describe()));
  }
  list.push_back(fmt::format(fmt::runtime(kMiddle), side));
  dataset.set_view(fmt::format("{{class: Augment, augmentations: {}}}", yaml_of(list)));
  dataset.set("class", "ImageFolder");
  dataset.take("path", "path");
  dataset.set("classes", Value(Value::List{}));
  dataset.set("channels", int64_t{dataset.is_true("transparent") ? 4 : 3});
  note_dlas_range(dataset, false);
  return {"hq", "lq"};
}

std::vector<std::string> take_dlas_audio(DlasDataset& dataset) {
  const Value* found = dataset.find("sampling_rate");
  const Value rate = found == nullptr ? Value(int64_t{22'050}) : *found;
  const Value* seconds = dataset.find("pad_to_seconds");
  const Value* samples = dataset.find("pad_to_samples");
  Value length = seconds == nullptr ? Value() : *seconds;
  if (samples != nullptr && samples->is_int() && rate.is_int() && rate.as_int() > 0) {
    length = Value(static_cast<double>(samples->as_int()) / static_cast<double>(rate.as_int()));
  }
  if (length.is_null()) {
    dataset.note("pad_to_samples",
                 "is missing, which fails there; here examples then differ in length: Padded makes "
                 "batches");
  }
  dataset.set("class", "Map");
  dataset.set("function", parse_yaml("{class: rename, keys: {audio: clip}}", {}));
  const auto sounds_in = [&](const Value& path) {
    Value::Map sounds;
    sounds.set("class", Value("Sound"));
    sounds.set("path", path);
    sounds.set("classes", Value(Value::List{}));
    sounds.set("rate", rate);
    if (!length.is_null()) sounds.set("seconds", length);
    return Value(std::move(sounds));
  };
  const Value* path = dataset.find("path");
  if (path == nullptr) {
    dataset.note("path", "is missing: a folder of WAV, FLAC or Ogg files");
  } else if (!path->is_list()) {
    dataset.set("dataset", sounds_in(*path));
  } else {
    Value::List folders;
    for (const auto& folder : path->as_list()) folders.push_back(sounds_in(folder));
    dataset.set("dataset/class", "Concat");
    dataset.set("dataset/datasets", Value(std::move(folders)));
  }
  dataset.note("mode",
               "an example has clip, without clip_lengths and prepad_length; of several channels "
               "it is the mean, there the first");
  return {"clip"};
}

}  // namespace stepop
