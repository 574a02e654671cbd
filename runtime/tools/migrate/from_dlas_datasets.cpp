#include "runtime/tools/migrate/from_dlas_datasets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/base/text.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/tools/migrate/from_dlas_left_out.h"

namespace stepop {
namespace {

constexpr int64_t kExamplesOfNoise = 1'048'576;  ///< As in DL-Art-School.

/// Keys of every dataset that do not affect its examples.
constexpr std::array<std::string_view, 5> kSilent = {"mode", "name", "phase", "n_workers",
                                                     "batch_size"};
constexpr std::array<std::string_view, 4> kNoOps = {"block_noise", "color_shift", "interlacing",
                                                    "chromatic_aberration"};
class DatasetTranslation {
 public:
  /// `there` and `here`: the dataset's places in both configs, such as `datasets/val`.
  DatasetTranslation(std::string there, std::string here, const Value& dataset,
                     TranslatedConfig& result)
      : there_(std::move(there)), here_(std::move(here)), dataset_(dataset), result_(result) {}

  void run() {
    const Value* mode = find_in_map(dataset_, "mode");
    const std::string name = mode != nullptr && mode->is_text() ? mode->as_text() : "";
    if (name == "random_dataset") {
      take_noise();
    } else if (name == "imagefolder" || name == "single_image_extensible") {
      take_folder(name != "imagefolder");
    } else if (name == "fullimage") {
      take_full_images();
    } else if (name == "byol_dataset") {
      take_views();
    } else {
      note("mode", name.empty() ? "is missing" : without_counterpart(name));
      return;
    }
    for (const auto& [key, value] : dataset_.as_map()) note_unread(key, value);
  }

 private:
  std::string place(std::string_view key) const { return fmt::format("{}/{}", there_, key); }
  void note(std::string_view key, std::string text) { result_.note(place(key), std::move(text)); }
  void set(std::string_view key, Value value) {
    result_.set(fmt::format("{}/{}", here_, key), std::move(value));
  }

  bool is_true(std::string_view key, bool fallback) {
    read_.push_back(std::string(key));
    const Value* found = find_in_map(dataset_, key);
    return found == nullptr ? fallback : *found == Value(true);
  }

  std::string without_counterpart(const std::string& mode) const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : dataset_.as_map()) {
      if (std::ranges::find(kSilent, key) == kSilent.end()) keys.push_back(key);
    }
    return fmt::format(
        "{} has no counterpart{}: `stepop list dataset` shows what there is; name "
        "one, or a class of your own, as {}/class",
        mode, keys.empty() ? "" : ", nor have " + list_text(keys, keys.size()), here_);
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
      return note(key, fmt::format("a dataset reads one folder: give it as {}/{}, with "
                                   "links to the {} that are named here",
                                   here_, as, found->as_list().size()));
    }
    set(as, found->is_list() ? found->as_list().front() : *found);
  }

  /// `has_chunks`: single_image_extensible, whose images are neither mirrored nor cut to squares.
  void take_folder(bool has_chunks) {
    set("class", "CorruptedImages");
    for (const auto& parameter : find_component("dataset", "CorruptedImages")->about.parameters) {
      const std::string& key = parameter.name;  // the same there
      read_.push_back(key);
      const Value* found = find_in_map(dataset_, key);
      const bool is_default = found == nullptr || (is_switched_off(*found) &&
                                                   key != "force_square" && key != "cosine_bias");
      if (!is_default) set(key, without_no_ops(key, *found));
    }
    if (has_chunks) {
      set("disable_flip", true);
      set("force_square", false);
      if (is_true("eval", false)) {  // lq is hq
        set("scale", int64_t{1});
        set("fixed_corruptions", Value());
        set("num_corrupts_per_image", Value());
      }
    }
    note_range(is_true("rgb_n1_to_1", false));
  }

  /// A list of corruptions with `none` in place of those that change nothing.
  Value without_no_ops(std::string_view key, Value value) {
    if (!value.is_list()) return value;
    for (auto& name : value.as_list()) {
      if (!name.is_text() || std::ranges::find(kNoOps, name.as_text()) == kNoOps.end()) continue;
      note(key, name.as_text() + " changes nothing there, and becomes none");
      name = Value("none");
    }
    return value;
  }

  void take_full_images() {
    set("class", "PairedImages");
    take_path("dataroot_GT", "hq");
    take_path("dataroot_LQ", "lq");
    take("scale", "scale");
    take("target_size", "crop");
    take("force_multiple", "multiple");
    if (is_true("use_flip", false)) set("flip", true);
    if (is_true("use_rot", false)) set("rotate", true);
    note_range(false);
  }

  /// The two views of BYOL, aug1 and aug2.
  void take_views() {
    set("class", "Augment");
    set("views/aug1", text_at("key1", "hq"));
    set("views/aug2", text_at("key2", "lq"));
    const bool has_colours = !is_true("for_sr", false);
    Value::List list = {parse_yaml("{class: RandomHorizontalFlip}", {}),
                        parse_yaml("{class: RandomResizedCrop}", {})};
    read_.emplace_back("crop_size");
    if (const Value* size = find_in_map(dataset_, "crop_size")) {
      list.back().as_map().set("size", *size);
    } else {
      note("crop_size", "is missing: RandomResizedCrop needs its size");
    }
    if (has_colours) {
      list.push_back(parse_yaml(
          "{class: ColorJitter, brightness: 0.8, contrast: 0.8, saturation: 0.8, hue: 0.2, p: 0.8}",
          {}));
      list.push_back(parse_yaml("{class: RandomGrayscale, p: 0.2}", {}));
      list.push_back(
          parse_yaml("{class: GaussianBlur, kernel_size: 3, sigma: [1.5, 1.5], p: 0.1}", {}));
    }
    set("augmentations", Value(std::move(list)));
    read_.emplace_back("dataset");
    const Value* inner = find_in_map(dataset_, "dataset");
    if (inner == nullptr || !inner->is_map()) return note("dataset", "is missing");
    DatasetTranslation(there_ + "/dataset", here_ + "/dataset", *inner, result_).run();
  }

  Value text_at(std::string_view key, const char* fallback) {
    read_.emplace_back(key);
    const Value* found = find_in_map(dataset_, key);
    return found == nullptr ? Value(fallback) : *found;
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
    if (key == "pin_memory" && value == Value(false)) {
      return note(key, "left out: memory is pinned where the device is a GPU");
    }
    if (is_switched_off(value) || value == Value(int64_t{0})) return;
    if (std::ranges::find(read_, key) != read_.end()) return;
    note(key, why_dlas_key_is_left_out("datasets/" + key));
  }

  std::string there_, here_;
  const Value& dataset_;
  TranslatedConfig& result_;
  std::vector<std::string> read_;
};

}  // namespace

void translate_dlas_dataset(const std::string& there, const std::string& here, const Value& dataset,
                            TranslatedConfig& result) {
  DatasetTranslation(there, here, dataset, result).run();
}

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
    DatasetTranslation("datasets/" + phase, is_train ? "datasets/train" : "datasets/validation",
                       dataset, result)
        .run();
  }
}

}  // namespace stepop
