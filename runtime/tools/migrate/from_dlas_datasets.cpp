#include "runtime/tools/migrate/from_dlas_datasets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace stepop {
namespace {

constexpr int64_t kExamplesOfNoise = 1'048'576;  ///< As in DL-Art-School.

using Row = std::pair<std::string_view, std::string_view>;

/// Keys of every dataset that do not affect its examples.
constexpr std::array<std::string_view, 6> kSilent = {"mode",       "name",      "phase",
                                                     "pin_memory", "n_workers", "batch_size"};
constexpr std::string_view kCorrupted =
    "left out: augmentations: {input: {...}} of the dataset puts noise, JPEG, motion blur and "
    "other colours on `lq`; files of `lq` may have any other change";

/// Keys without a counterpart, and the reason. Keys whose value switches them off are left out
/// silently.
constexpr std::array kNoCounterpart = {
    Row{"fixed_corruptions", kCorrupted},
    Row{"random_corruptions", kCorrupted},
    Row{"num_corrupts_per_image", "left out, with the corruptions"},
    Row{"corruption_blur_scale", "left out, with the corruptions"},
    Row{"cosine_bias", "left out, with the corruptions"},
    Row{"corrupt_before_downsize", "left out, with the corruptions"},
    Row{"force_multiple", "left out: crop says how large images are"},
    Row{"eval", "left out: the validation split is read without random choices"},
    Row{"weights", "every file counts once: samplers/train: {class: weighted, ...} has weights"},
    Row{"fetch_alt_image", "no second image: an example has hq and lq"},
    Row{"fetch_alt_tiled_image", "no second image: an example has hq and lq"},
    Row{"all_image_color_jitter", "no such change of images"},
    Row{"labeler", "no labels of patches"},
    Row{"need_ref", "no picture of the whole beside its part"},
    Row{"ignore_first", "all files of a folder are read"},
    Row{"strict", "images are read from folders, at any depth"},
    Row{"needs_metadata", "images are read from folders, at any depth"},
    Row{"use_blurring", "left out: augmentations: {input: {...}} of the dataset has motion blur"},
    Row{"use_compression_artifacts",
        "left out: augmentations: {input: {...}} of the dataset has JPEG artifacts"},
    Row{"lq_noise", "noise is an injector: {type: add_noise, in: lq, out: noisy, scale: 0.1}"},
    Row{"normalize", "pictures are in [-1, 1]; an injector does more: {type: normalize, ...}"},
};

class DatasetTranslation {
 public:
  DatasetTranslation(std::string split, const Value& dataset, TranslatedConfig& result)
      : split_(std::move(split)), dataset_(dataset), result_(result) {}

  void run() {
    const Value* mode = find_in_map(dataset_, "mode");
    const std::string name = mode != nullptr && mode->is_text() ? mode->as_text() : "";
    if (name == "random_dataset") {
      take_noise();
    } else if (name == "imagefolder" || name == "single_image_extensible") {
      take_folder(name == "imagefolder");
    } else if (name == "fullimage") {
      take_full_images();
    } else {
      note("mode",
           name.empty()
               ? "is missing"
               : fmt::format("{} has no counterpart: `stepop list dataset` shows what there is; "
                             "name one, or a class of your own, as datasets/{}/class",
                             name, split_));
      return;
    }
    for (const auto& [key, value] : dataset_.as_map()) note_unread(key, value);
  }

 private:
  std::string place(std::string_view key) const {
    return fmt::format("datasets/{}/{}", split_ == "validation" ? "val" : split_, key);
  }
  void note(std::string_view key, std::string text) { result_.note(place(key), std::move(text)); }
  void set(std::string_view key, Value value) {
    result_.set(fmt::format("datasets/{}/{}", split_, key), std::move(value));
  }

  bool is_true(std::string_view key, bool fallback) {
    read_.push_back(std::string(key));
    const Value* found = find_in_map(dataset_, key);
    return found == nullptr ? fallback : *found == Value(true);
  }

  /// Copies the value at `key` to another name.
  bool take(std::string_view key, std::string_view as) {
    read_.push_back(std::string(key));
    const Value* found = find_in_map(dataset_, key);
    if (found != nullptr) set(as, *found);
    return found != nullptr;
  }

  void take_noise() {
    set("class", "RandomTensors");
    set("size", kExamplesOfNoise);
    take("hq_shape", "tensors/hq");
    take("lq_shape", "tensors/lq");
  }

  void take_path(std::string_view key, std::string_view as) {
    read_.push_back(std::string(key));
    const Value* found = find_in_map(dataset_, key);
    if (found == nullptr) return;
    const bool is_list = found->is_list() && found->as_list().size() != 1;
    if (is_list) {
      return note(key, fmt::format("a dataset reads one folder: give it as datasets/{}/{}, with "
                                   "links to the {} that are named here",
                                   split_, as, found->as_list().size()));
    }
    set(as, found->is_list() ? found->as_list().front() : *found);
  }

  void take_folder(bool is_image_folder) {
    set("class", "PairedImages");
    take_path("paths", "hq");
    take("scale", "scale");
    if (take("target_size", "crop")) {
      set("random", false);
      note("target_size",
           "becomes crop: a part of that size is cut out of the middle, where there "
           "the image is made that large or small");
    }
    if (is_image_folder && !is_true("disable_flip", false)) set("flip", true);
    if (!is_true("force_square", true)) {
      note("force_square", "false: images of different sizes need batch_size 1");
    }
    is_true("skip_lq", false);
    note_range(is_true("rgb_n1_to_1", false));
  }

  void take_full_images() {
    set("class", "PairedImages");
    take_path("dataroot_GT", "hq");
    take_path("dataroot_LQ", "lq");
    take("scale", "scale");
    take("target_size", "crop");
    if (is_true("use_flip", false)) set("flip", true);
    if (is_true("use_rot", false)) set("rotate", true);
    if (is_true("grayscale", false)) set("channels", int64_t{1});
    note_range(false);
  }

  /// Notes that pictures are in [0, 1] in DL-Art-School.
  void note_range(bool is_same) {
    if (is_same) return;
    note("rgb_n1_to_1",
         "pictures are in [-1, 1] here, there in [0, 1] unless this is true: a "
         "difference of two is twice as large");
  }

  void note_unread(const std::string& key, const Value& value) {
    if (std::ranges::find(kSilent, key) != kSilent.end()) return;
    const bool is_default = key == "force_multiple" && value == Value(int64_t{1});
    if (is_off(value) || value == Value(int64_t{0}) || is_default) return;
    if (std::ranges::find(read_, key) != read_.end()) return;
    const std::string_view why = find_in(kNoCounterpart, key);
    note(key, why.empty() ? "no counterpart" : std::string(why));
  }

  std::string split_;
  const Value& dataset_;
  TranslatedConfig& result_;
  std::vector<std::string> read_;
};

}  // namespace

void translate_dlas_datasets(const Value& datasets, TranslatedConfig& result) {
  for (const auto& [phase, dataset] : datasets.as_map()) {
    const bool is_train = phase == "train";
    if (!dataset.is_map() || (!is_train && phase != "val")) {
      result.note("datasets/" + phase, "left out: there are train and val, each a map");
      continue;
    }
    const Value* batch_size = find_in_map(dataset, "batch_size");
    if (is_train) {
      if (batch_size != nullptr) result.set("batch_size", *batch_size);
      result.set("drop_last", true);
      const Value* workers = find_in_map(dataset, "n_workers");
      if (workers != nullptr) result.set("n_data_processes", *workers);
    } else {
      result.set("test_batch_size", batch_size != nullptr ? *batch_size : Value(int64_t{1}));
    }
    DatasetTranslation(is_train ? "train" : "validation", dataset, result).run();
  }
}

}  // namespace stepop
