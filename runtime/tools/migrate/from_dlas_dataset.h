#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/tools/migrate/translated_config.h"

namespace stepop {

/// A dataset of a DL-Art-School config while it is translated.
class DlasDataset {
 public:
  /// `there` and `here`: the dataset's places in both configs, such as `datasets/val`.
  DlasDataset(std::string there, std::string here, const Value& dataset, TranslatedConfig& result)
      : there_(std::move(there)), here_(std::move(here)), dataset_(dataset), result_(result) {}

  /// Translates the dataset. Returns the keys of its examples, none for an unknown mode.
  std::vector<std::string> translate();

  /// The value of a key, which counts as read; null without one.
  const Value* find(std::string_view key) {
    read_.emplace_back(key);
    return find_in_map(dataset_, key);
  }
  bool is_true(std::string_view key, bool fallback = false) {
    const Value* found = find(key);
    return found == nullptr ? fallback : *found == Value(true);
  }
  std::string text_at(std::string_view key, const char* fallback = "") {
    const Value* found = find(key);
    return found == nullptr || !found->is_text() ? fallback : found->as_text();
  }
  /// Copies the value at `key` to another name.
  bool take(std::string_view key, std::string_view as) {
    const Value* found = find(key);
    if (found != nullptr) set(as, *found);
    return found != nullptr;
  }

  std::string place(std::string_view key) const { return there_ + "/" + std::string(key); }
  std::string place_here(std::string_view key) const { return here_ + "/" + std::string(key); }
  void note(std::string_view key, std::string text) { result_.note(place(key), std::move(text)); }
  void set(std::string_view key, Value value) { result_.set(place_here(key), std::move(value)); }
  /// Sets the keys of a view; what is set from now on belongs to the dataset that it is of.
  void set_view(std::string_view yaml);
  /// Translates a dataset within this one, as `copy` says it, to the place `as` within this one's.
  std::vector<std::string> translate_inner(std::string_view key, const Value& copy,
                                           std::string_view as);

  const Value& value() const { return dataset_; }

 private:
  void note_unread();
  std::string without_counterpart(const std::string& mode) const;

  std::string there_, here_;
  const Value& dataset_;
  TranslatedConfig& result_;
  std::vector<std::string> read_;
};

/// Notes that pictures are in [0, 1] in DL-Art-School, unless `is_same`.
void note_dlas_range(DlasDataset& dataset, bool is_same);

/// The modes that views of other datasets are here: each returns the keys of the examples.
std::vector<std::string> take_dlas_byol(DlasDataset& dataset);
std::vector<std::string> take_dlas_random_aug(DlasDataset& dataset);
std::vector<std::string> take_dlas_combined(DlasDataset& dataset);
std::vector<std::string> take_dlas_torch(DlasDataset& dataset);
std::vector<std::string> take_dlas_stylegan2(DlasDataset& dataset);
std::vector<std::string> take_dlas_audio(DlasDataset& dataset);

}  // namespace stepop
