#include "runtime/train/checks/data_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "runtime/core/base/number_text.h"
#include "runtime/train/iterator/splits.h"

namespace stepop {
namespace {

const Value* item_of(const Value& map, const char* key) {
  const Value* found = map.is_map() ? map.as_map().find(key) : nullptr;
  return found == nullptr || found->is_null() ? nullptr : found;
}

bool is_of_class(const Value& dataset, const char* name) {
  const Value* kind = item_of(dataset, "class");
  return kind != nullptr && *kind == Value(name);
}

/// The first dataset of that class, from the outside in, and its place.
const Value* find_class(const Value& dataset, const char* name, std::string& place) {
  if (is_of_class(dataset, name)) return &dataset;
  const Value* inner = item_of(dataset, "dataset");
  if (inner == nullptr) return nullptr;
  place += "/dataset";
  return find_class(*inner, name, place);
}

bool are_equal(const Value& a, const Value& b, const char* key) {
  const Value* of_a = item_of(a, key);
  const Value* of_b = item_of(b, key);
  return of_a == nullptr || of_b == nullptr ? of_a == of_b : *of_a == *of_b;
}

double number_of(const Value& value) {
  return value.is_int() ? static_cast<double>(value.as_int())
                        : (value.is_float() ? value.as_float() : 0);
}

/// Where a Subset of `size` examples begins and ends among those of its dataset, of which there are
/// `all`; nothing for a list or a step.
std::optional<std::pair<double, double>> stretch_of(const Value& subset, double all) {
  if (const Value* range = item_of(subset, "range"); range != nullptr && range->is_list()) {
    const auto& ends = range->as_list();
    if (ends.size() != 2) return std::nullopt;
    return std::pair(number_of(ends[0]), number_of(ends[1]));
  }
  const Value* fraction = item_of(subset, "fraction");
  if (fraction == nullptr) return std::nullopt;
  const bool is_list = fraction->is_list() && fraction->as_list().size() == 2;
  if (fraction->is_list() && !is_list) return std::nullopt;
  const double begin = is_list ? number_of(fraction->as_list()[0]) : 0;
  const double end = number_of(is_list ? fraction->as_list()[1] : *fraction);
  return std::pair(std::round(begin * all), std::round(end * all));
}

/// How many examples a Subset's dataset has; nothing if its part of the config does not say.
std::optional<double> size_before(const Value& subset, int64_t size) {
  const auto share = stretch_of(subset, 1'000'000);
  if (item_of(subset, "fraction") == nullptr || !share || share->second <= share->first) {
    return std::nullopt;
  }
  return std::round(static_cast<double>(size) * 1'000'000 / (share->second - share->first));
}

class DataWarnings {
 public:
  DataWarnings(const Context& context, std::string split)
      : context_(context),
        place_("datasets/" + split),
        split_(std::move(split)),
        trained_(context.config.peek("datasets/train")),
        evaluated_(context.config.peek(place_)) {}

  std::vector<std::string> look() {
    if (split_ == "train" || trained_ == nullptr || evaluated_ == nullptr) return {};
    if (*trained_ == *evaluated_) {
      add(place_, "the same examples as datasets/train: evaluations see what was trained");
      return texts_;
    }
    look_at_folds();
    look_at_subsets();
    look_at_sizes();
    look_at_augmentation();
    return texts_;
  }

 private:
  void add(const std::string& place, const std::string& text) {
    texts_.emplace_back(context_.config.error(place, text).what());
  }

  /// Two parts of a table, or of a random split, are disjoint if they are of one division.
  void look_at_folds() {
    std::string place = place_;
    std::string place_of_training;
    const Value* trained = find_class(*trained_, "Csv", place_of_training);
    const Value* evaluated = find_class(*evaluated_, "Csv", place);
    const bool have_folds = trained != nullptr && evaluated != nullptr &&
                            item_of(*trained, "folds") != nullptr &&
                            item_of(*evaluated, "folds") != nullptr;
    if (!have_folds || !are_equal(*trained, *evaluated, "path")) return;
    for (const char* key : {"folds", "fold", "fold_seed", "fold_by"}) {
      if (are_equal(*trained, *evaluated, key)) continue;
      return add(place + "/" + key,
                 fmt::format("not that of datasets/train: rows of the training are among these; "
                             "fit: train takes its {}",
                             key));
    }
    if (!are_equal(*trained, *evaluated, "part")) return;
    add(place + "/part",
        "that of datasets/train: these rows are trained on; part: validation has "
        "the others");
  }

  void look_at_subsets() {
    std::string place = place_;
    std::string place_of_training;
    const Value* trained = find_class(*trained_, "Subset", place_of_training);
    const Value* evaluated = find_class(*evaluated_, "Subset", place);
    if (trained == nullptr || evaluated == nullptr || !are_equal(*trained, *evaluated, "dataset")) {
      return;
    }
    const bool are_split =
        item_of(*trained, "split") != nullptr && item_of(*evaluated, "split") != nullptr;
    if (are_split && !are_equal(*trained, *evaluated, "split")) {
      return add(place + "/split",
                 "not that of datasets/train: examples of the training are among these");
    }
    // A view around a subset nearly always has as many examples as the subset.
    const auto all =
        size_before(*trained, context_.splits.examples("train"))
            .value_or(size_before(*evaluated, context_.splits.examples(split_)).value_or(0));
    const auto a = stretch_of(*trained, all);
    const auto b = stretch_of(*evaluated, all);
    if (!a || !b) return;
    const double common = std::min(a->second, b->second) - std::max(a->first, b->first);
    if (common < 1) return;
    add(place, fmt::format("{} of its examples are also in datasets/train",
                           with_thousands(static_cast<int64_t>(common))));
  }

  void look_at_sizes() {
    std::string ignored;
    // A part of the training's data, as one takes to try something.
    if (find_class(*trained_, "Subset", ignored) != nullptr) return;
    const int64_t trained = context_.splits.examples("train");
    const int64_t evaluated = context_.splits.examples(split_);
    if (trained == 0 || evaluated <= trained) return;
    add(place_, fmt::format("{}, but datasets/train has {}: are the two swapped?",
                            counted(evaluated, "example"), with_thousands(trained)));
  }

  void look_at_augmentation() {
    std::string place = place_;
    const Value* augment = find_class(*evaluated_, "Augment", place);
    if (augment == nullptr || item_of(*augment, "views") != nullptr) return;
    for (const char* key : {"noise", "flip", "shift"}) {
      const Value* value = item_of(*augment, key);
      const bool is_off = value == nullptr || *value == Value(false) ||
                          ((value->is_int() || value->is_float()) && number_of(*value) == 0);
      if (is_off) continue;
      return add(place + "/" + key,
                 "images of an evaluation are changed at random; Augment is for datasets/train");
    }
  }

  const Context& context_;
  std::string place_;
  std::string split_;
  const Value* trained_;
  const Value* evaluated_;
  std::vector<std::string> texts_;
};

}  // namespace

std::vector<std::string> data_warnings(const Settings& settings, const Context& context) {
  std::vector<std::string> texts;
  for (const auto& evaluation : settings.evaluations) {
    for (auto& text : DataWarnings(context, evaluation.op.split).look()) {
      if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
    }
  }
  return texts;
}

}  // namespace stepop
