#include <fmt/format.h>

#include <cmath>
#include <cstdint>
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

std::vector<Source> one_source(const Config& params) {
  std::vector<Source> sources;
  sources.emplace_back(params, "dataset");
  return sources;
}

/// A part of another dataset: a range with a step, which costs no memory, or a list of indices.
class Subset : public IndexView {
 public:
  explicit Subset(const Config& params) : IndexView(one_source(params)) {
    std::vector<std::string> given;
    for (const char* key : {"range", "indices", "fraction", "split"}) {
      if (params.has(key)) given.emplace_back(key);
    }
    if (given.size() != 1) {
      throw params.error("", fmt::format("Subset needs one of range, indices, fraction and split, "
                                         "found {}",
                                         given.empty() ? "none" : list_text(given)));
    }
    if (given[0] == "range") read_range(params);
    if (given[0] == "fraction") read_fraction(params);
    if (given[0] == "indices") read_indices(params);
    if (given[0] == "split") indices_ = read_part(params, source());
    is_list_ = given[0] == "indices" || given[0] == "split";
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

  void read_range(const Config& params) {
    const auto range = params.get<std::vector<int64_t>>("range");
    const int64_t step = range.size() == 3 ? range[2] : 1;
    if ((range.size() != 2 && range.size() != 3) || range[0] < 0 || range[1] < range[0] ||
        range[1] > source().size() || step < 1) {
      throw params.error(
          "range", fmt::format("expected [begin, end] or [begin, end, step] with 0 "
                               "<= begin <= end <= {}, the number of examples of "
                               "{}; found {}",
                               source().size(), source().place(), list_text(texts_of(range))));
    }
    stretch_ = {range[0], step, (range[1] - range[0] + step - 1) / step};
  }

  void read_fraction(const Config& params) {
    const Value* value = params.peek("fraction");
    std::vector<double> ends = {0};
    if (value->is_list())
      ends = params.get<std::vector<double>>("fraction");
    else
      ends.push_back(params.get<double>("fraction"));
    if (ends.size() != 2 || !(ends[0] >= 0 && ends[0] <= ends[1] && ends[1] <= 1)) {
      throw params.error("fraction",
                         "expected the part from the beginning, such as 0.9, or where "
                         "it begins and ends, such as [0.9, 1], within 0 and 1");
    }
    const auto size = static_cast<double>(source().size());
    const int64_t begin = std::llround(ends[0] * size);
    stretch_ = {begin, 1, std::llround(ends[1] * size) - begin};
  }

  void read_indices(const Config& params) {
    indices_ = params.get<std::vector<int64_t>>("indices");
    for (size_t i = 0; i < indices_.size(); ++i) {
      if (indices_[i] >= 0 && indices_[i] < source().size()) continue;
      throw params.error("indices/" + std::to_string(i),
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
    Subset, {"A part of another dataset: a range, a list, a fraction, or one side of a split.",
             {{"dataset", "", "the other one, such as {class: Idx, ...}"},
              {"range", "null", "[begin, end] or [begin, end, step], the end excluded"},
              {"indices", "null", "a list, in the order in which they are wanted"},
              {"fraction", "null", "0.9, the first nine tenths; or [0.9, 1], the last"},
              {"split", "null",
               "{parts: {train: 0.9, validation: 0.1}, seed: 0, groups: null}: at random, by the "
               "seed; examples with one value of the label `groups` stay together"},
              {"part", "null", "of a split: which one, such as train"}}});

}  // namespace
}  // namespace stepop
