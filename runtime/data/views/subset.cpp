#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/data/views/index_view.h"
#include "runtime/data/views/split.h"

namespace stepop {
namespace {

/// Every `step`-th example from `begin` on, `count` of them.
struct Stretch {
  int64_t begin = 0;
  int64_t step = 1;
  int64_t count = 0;
};

std::vector<Source> list_of(Source source) {
  std::vector<Source> sources;
  sources.push_back(std::move(source));
  return sources;
}

/// A part of another dataset: a range with a step, which costs no memory, or a list of indices.
class Subset : public IndexView {
 public:
  struct Params {
    Source dataset;
    std::optional<std::vector<int64_t>> range;
    std::optional<std::vector<int64_t>> indices;
    std::optional<std::vector<double>> fraction;  ///< Where it begins and ends.
    bool is_split = false;

    void declare(Parameters& p) {
      p.require("dataset", dataset, "the other one, such as {class: Idx, ...}");
      p.add("range", range, "[begin, end] or [begin, end, step], the end excluded");
      p.add("indices", indices, "a list, in the order in which they are wanted");
      const Config* config =
          p.describe_optional("fraction", "number | list of number",
                              "0.9, the first nine tenths; or [0.9, 1], the last");
      if (config != nullptr) {
        fraction = config->peek("fraction")->is_list()
                       ? config->get<std::vector<double>>("fraction")
                       : std::vector{0, config->get<double>("fraction")};
      }
      config = p.describe_optional(
          "split", "map",
          "{parts: {train: 0.9, validation: 0.1}, seed: 0, groups: null}: at random, by the seed; "
          "examples with one value of the label `groups` stay together");
      is_split = config != nullptr;
      p.describe({"part", "none", "of a split: which one, such as train", false, {.kind = "text"}});
    }
  };

  Subset(Params params, const Config& config) : IndexView(list_of(std::move(params.dataset))) {
    std::vector<std::string> given;
    if (params.range) given.emplace_back("range");
    if (params.indices) given.emplace_back("indices");
    if (params.fraction) given.emplace_back("fraction");
    if (params.is_split) given.emplace_back("split");
    if (given.size() != 1) {
      throw config.error("", fmt::format("Subset needs one of range, indices, fraction and split, "
                                         "found {}",
                                         given.empty() ? "none" : list_text(given)));
    }
    if (params.range) take_range(config, *params.range);
    if (params.fraction) take_fraction(config, *params.fraction);
    if (params.indices) take_indices(config, *params.indices);
    if (params.is_split) indices_ = read_part(config, source());
    is_list_ = params.indices || params.is_split;
  }

  int64_t size() const override {
    return is_list_ ? static_cast<int64_t>(indices_.size()) : stretch_.count;
  }

  at::Tensor labels(std::string_view key) const override {
    if (is_list_) return IndexView::labels(key);
    const at::Tensor labels = source().labels(key);
    if (!labels.defined()) return labels;
    return labels.slice(0, stretch_.begin, stretch_.begin + stretch_.count * stretch_.step,
                        stretch_.step);
  }

 protected:
  Place place_of(int64_t index) const override {
    return {0, is_list_ ? indices_[static_cast<size_t>(index)]
                        : stretch_.begin + index * stretch_.step};
  }

 private:
  const Source& source() const { return sources()[0]; }

  void take_range(const Config& config, const std::vector<int64_t>& range) {
    const int64_t step = range.size() == 3 ? range[2] : 1;
    if ((range.size() != 2 && range.size() != 3) || range[0] < 0 || range[1] < range[0] ||
        range[1] > source().size() || step < 1) {
      throw config.error(
          "range", fmt::format("expected [begin, end] or [begin, end, step] with 0 "
                               "<= begin <= end <= {}, the number of examples of "
                               "{}; found {}",
                               source().size(), source().place(), list_text(texts_of(range))));
    }
    stretch_ = {range[0], step, (range[1] - range[0] + step - 1) / step};
  }

  void take_fraction(const Config& config, const std::vector<double>& ends) {
    if (ends.size() != 2 || !(ends[0] >= 0 && ends[0] <= ends[1] && ends[1] <= 1)) {
      throw config.error("fraction",
                         "expected the part from the beginning, such as 0.9, or where "
                         "it begins and ends, such as [0.9, 1], within 0 and 1");
    }
    const auto size = static_cast<double>(source().size());
    const int64_t begin = std::llround(ends[0] * size);
    stretch_ = {begin, 1, std::llround(ends[1] * size) - begin};
  }

  void take_indices(const Config& config, std::vector<int64_t> indices) {
    indices_ = std::move(indices);
    for (size_t i = 0; i < indices_.size(); ++i) {
      if (indices_[i] >= 0 && indices_[i] < source().size()) continue;
      throw config.error("indices/" + std::to_string(i),
                         fmt::format("there is no example {}: {} has {}", indices_[i],
                                     source().place(), with_thousands(source().size())));
    }
  }

  static std::vector<std::string> texts_of(const std::vector<int64_t>& numbers) {
    std::vector<std::string> texts;
    for (const int64_t number : numbers) texts.push_back(std::to_string(number));
    return texts;
  }

  bool is_list_ = false;
  Stretch stretch_;
  std::vector<int64_t> indices_;
};

STEPOP_REGISTER_DATASET(
    Subset, {"A part of another dataset: a range, a list, a fraction, or one side of a split."});

}  // namespace
}  // namespace stepop
