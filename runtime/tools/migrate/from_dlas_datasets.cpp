#include "runtime/tools/migrate/from_dlas_datasets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/text.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/tools/migrate/from_dlas_dataset.h"
#include "runtime/tools/migrate/from_dlas_left_out.h"

namespace stepop {
namespace {

constexpr int64_t kExamplesOfNoise = 1'048'576;  ///< As in DL-Art-School.

/// Keys of every dataset that do not affect its examples.
constexpr std::array<std::string_view, 5> kSilent = {"mode", "name", "phase", "n_workers",
                                                     "batch_size"};
constexpr std::array<std::string_view, 4> kNoOps = {"block_noise", "color_shift", "interlacing",
                                                    "chromatic_aberration"};
using Keys = std::vector<std::string>;

Keys take_noise(DlasDataset& dataset) {
  dataset.set("class", "RandomTensors");
  dataset.set("size", kExamplesOfNoise);
  Keys keys;
  if (dataset.take("hq_shape", "tensors/hq")) keys.emplace_back("hq");
  if (dataset.take("lq_shape", "tensors/lq")) keys.emplace_back("lq");
  return keys;
}

void take_path(DlasDataset& dataset, std::string_view key, std::string_view as) {
  const Value* found = dataset.find(key);
  if (found == nullptr) return;
  const bool is_list = found->is_list() && found->as_list().size() != 1;
  if (is_list) {
    return dataset.note(key, fmt::format("a dataset reads one folder: give it as {}, with "
                                         "links to the {} that are named here",
                                         dataset.place_here(as), found->as_list().size()));
  }
  dataset.set(as, found->is_list() ? found->as_list().front() : *found);
}

/// A list of corruptions with `none` in place of those that change nothing.
Value without_no_ops(DlasDataset& dataset, std::string_view key, Value value) {
  if (!value.is_list()) return value;
  for (auto& name : value.as_list()) {
    if (!name.is_text() || std::ranges::find(kNoOps, name.as_text()) == kNoOps.end()) continue;
    dataset.note(key, name.as_text() + " changes nothing there, and becomes none");
    name = Value("none");
  }
  return value;
}

/// `has_chunks`: single_image_extensible, whose images are neither mirrored nor cut to squares.
Keys take_folder(DlasDataset& dataset, bool has_chunks) {
  dataset.set("class", "CorruptedImages");
  for (const auto& parameter : find_component("dataset", "CorruptedImages")->about.parameters) {
    const std::string& key = parameter.name;  // the same there
    const Value* found = dataset.find(key);
    const bool is_default = found == nullptr || (is_switched_off(*found) && key != "force_square" &&
                                                 key != "cosine_bias");
    if (!is_default) dataset.set(key, without_no_ops(dataset, key, *found));
  }
  if (has_chunks) {
    dataset.set("disable_flip", true);
    dataset.set("force_square", false);
    if (dataset.is_true("eval")) {  // lq is hq
      dataset.set("scale", int64_t{1});
      dataset.set("fixed_corruptions", Value());
      dataset.set("num_corrupts_per_image", Value());
    }
  }
  note_dlas_range(dataset, dataset.is_true("rgb_n1_to_1"));
  return dataset.is_true("skip_lq") ? Keys{"hq"} : Keys{"hq", "lq", "corruption_entropy"};
}

Keys take_full_images(DlasDataset& dataset) {
  dataset.set("class", "PairedImages");
  take_path(dataset, "dataroot_GT", "hq");
  take_path(dataset, "dataroot_LQ", "lq");
  dataset.take("scale", "scale");
  dataset.take("target_size", "crop");
  dataset.take("force_multiple", "multiple");
  if (dataset.is_true("use_flip")) dataset.set("flip", true);
  if (dataset.is_true("use_rot")) dataset.set("rotate", true);
  note_dlas_range(dataset, false);
  return {"hq", "lq"};
}

constexpr std::array<std::pair<std::string_view, Keys (*)(DlasDataset&)>, 10> kModes = {{
    {"random_dataset", take_noise},
    {"imagefolder", [](DlasDataset& dataset) { return take_folder(dataset, false); }},
    {"single_image_extensible", [](DlasDataset& dataset) { return take_folder(dataset, true); }},
    {"fullimage", take_full_images},
    {"byol_dataset", take_dlas_byol},
    {"random_aug_wrapper", take_dlas_random_aug},
    {"combined", take_dlas_combined},
    {"torch_dataset", take_dlas_torch},
    {"stylegan2", take_dlas_stylegan2},
    {"unsupervised_audio", take_dlas_audio},
}};

}  // namespace

std::vector<std::string> DlasDataset::translate() {
  const std::string mode = text_at("mode");
  for (const auto& [name, take] : kModes) {
    if (name != mode) continue;
    Keys keys = take(*this);
    note_unread();
    return keys;
  }
  note("mode", mode.empty() ? "is missing" : without_counterpart(mode));
  return {};
}

void DlasDataset::set_view(std::string_view yaml) {
  const Value view = parse_yaml(yaml, {});
  for (const auto& [key, value] : view.as_map()) set(key, value);
  here_ += "/dataset";
}

std::vector<std::string> DlasDataset::translate_inner(std::string_view key, const Value& copy,
                                                      std::string_view as) {
  return DlasDataset(place(key), as.empty() ? here_ : place_here(as), copy, result_).translate();
}

void DlasDataset::note_unread() {
  for (const auto& [key, value] : dataset_.as_map()) {
    if (std::ranges::find(kSilent, key) != kSilent.end()) continue;
    if (key == "pin_memory" && value == Value(false)) {
      note(key, "left out: memory is pinned where the device is a GPU");
      continue;
    }
    if (is_switched_off(value) || value == Value(int64_t{0})) continue;
    if (std::ranges::find(read_, key) != read_.end()) continue;
    note(key, why_dlas_key_is_left_out("datasets/" + key));
  }
}

std::string DlasDataset::without_counterpart(const std::string& mode) const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : dataset_.as_map()) {
    if (std::ranges::find(kSilent, key) == kSilent.end()) keys.push_back(key);
  }
  return fmt::format(
      "{} has no counterpart{}: `stepop list dataset` shows what there is; name "
      "one, or a class of your own, as {}",
      mode, keys.empty() ? "" : ", nor have " + list_text(keys, keys.size()), place_here("class"));
}

void note_dlas_range(DlasDataset& dataset, bool is_same) {
  if (is_same) return;
  dataset.note("rgb_n1_to_1",
               "pictures are in [-1, 1] here, there in [0, 1] unless this is true: a "
               "difference of two is twice as large");
}

void translate_dlas_dataset(const std::string& there, const std::string& here, const Value& dataset,
                            TranslatedConfig& result) {
  DlasDataset(there, here, dataset, result).translate();
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
    DlasDataset("datasets/" + phase, is_train ? "datasets/train" : "datasets/validation", dataset,
                result)
        .translate();
  }
}

}  // namespace stepop
