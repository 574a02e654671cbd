#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/example_random.h"
#include "runtime/data/views/key_parts.h"
#include "runtime/data/views/view.h"

namespace stepop {
namespace {

/// Each example with random others that have the same value of a label.
class Joined : public Dataset {
 public:
  struct Params {
    Source dataset;
    std::vector<int64_t> groups;
    int64_t partners = 1;
    std::string prefix = "partner";
    bool fixed = false;
    bool itself = false;

    void declare(Parameters& p) {
      p.require("dataset", dataset, "whose examples are joined");
      p.add("fixed", fixed, "the same partners each time, for a validation");
      p.add("itself", itself, "an example may be its own partner even where there are others");
      p.add("partners", partners, "how many; different ones where there are enough",
            at_least(1).at_most(1000));
      p.add("prefix", prefix,
            "of the other one's keys: partner/image; with several partner_1/image");
      const Config* config =
          p.describe_required("label", "text", "label that they share, such as a person's number");
      if (config != nullptr) groups = read_groups(*config, "label", dataset);
    }
  };

  explicit Joined(Params params)
      : source_(std::move(params.dataset)), is_fixed_(params.fixed), may_be_itself_(params.itself) {
    for (int64_t i = 1; i <= params.partners; ++i) {
      prefixes_.push_back(params.partners == 1 ? params.prefix + "/"
                                               : fmt::format("{}_{}/", params.prefix, i));
    }
    sort_by_label(params.groups);
  }

  int64_t size() const override { return source_.size(); }

  Example get(int64_t index, Random& random) const override {
    check_index(index, size());
    std::vector<Random> randoms;
    const std::vector<int64_t> members = members_of(index, random, randoms);
    Example example = source_.get(index, randoms[0]);
    for (size_t i = 0; i < prefixes_.size(); ++i) {
      add_part(example, prefixes_[i], source_.get(members[i + 1], randoms[i + 1]));
    }
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    // First all examples, then all their first partners, and so on: each group is one run of the
    // batch.
    const size_t count = indices.size();
    const size_t parts = prefixes_.size() + 1;
    std::vector<int64_t> inner(count * parts);
    std::vector<int64_t> outer(count * parts);
    std::vector<Random> inner_randoms(count * parts, Random(0));
    for (size_t i = 0; i < count; ++i) {
      check_index(indices[i], size());
      std::vector<Random> own;
      const std::vector<int64_t> members = members_of(indices[i], randoms[i], own);
      for (size_t part = 0; part < parts; ++part) {
        inner[part * count + i] = members[part];
        inner_randoms[part * count + i] = own[part];
        outer[part * count + i] = indices[i];
      }
    }
    const Batch all = source_.load(inner, inner_randoms, outer);
    Batch batch({}, {}, {indices.begin(), indices.end()});
    for (size_t part = 0; part < parts; ++part) {
      add_part(batch, part == 0 ? "" : prefixes_[part - 1], rows(all, part * count, count));
    }
    return batch;
  }

  at::Tensor labels(std::string_view key) const override {
    for (size_t i = 0; i < prefixes_.size() && is_fixed_; ++i) {
      if (!key.starts_with(prefixes_[i])) continue;
      const at::Tensor labels = source_.labels(key.substr(prefixes_[i].size()));
      return labels.defined() ? labels.index_select(0, partners(i)) : labels;
    }
    return source_.labels(key);
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys = source_->label_keys();
    for (size_t i = 0; i < prefixes_.size() && is_fixed_; ++i) {
      for (const auto& key : source_->label_keys()) keys.push_back(prefixes_[i] + key);
    }
    return keys;
  }

  std::string notice() const override { return source_->notice(); }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    std::vector<Example> own = examples;
    Batch batch({}, {}, indices);
    std::vector<Batch> partners;
    for (const auto& prefix : prefixes_) {
      std::vector<Example> parts;
      for (Example& example : own) {
        parts.push_back(part_below(example, prefix));
        const auto is_of_part = [&](const auto& entry) { return entry.first.starts_with(prefix); };
        example.tensors.erase_if(is_of_part);
        example.texts.erase_if(is_of_part);
      }
      partners.push_back(source_->collate(parts, indices));
    }
    add_part(batch, "", source_->collate(own, indices));
    for (size_t i = 0; i < prefixes_.size(); ++i) add_part(batch, prefixes_[i], partners[i]);
    return batch;
  }

 private:
  void sort_by_label(const std::vector<int64_t>& groups) {
    sorted_.resize(groups.size());
    std::iota(sorted_.begin(), sorted_.end(), 0);
    std::stable_sort(sorted_.begin(), sorted_.end(), [&](int64_t a, int64_t b) {
      return groups[static_cast<size_t>(a)] < groups[static_cast<size_t>(b)];
    });
    place_.resize(groups.size());
    for (size_t i = 0; i < sorted_.size(); ++i) {
      place_[static_cast<size_t>(sorted_[i])] = static_cast<int64_t>(i);
      const bool begins = i == 0 || groups[static_cast<size_t>(sorted_[i])] !=
                                        groups[static_cast<size_t>(sorted_[i - 1])];
      if (begins) begins_.push_back(static_cast<int64_t>(i));
    }
    begins_.push_back(static_cast<int64_t>(sorted_.size()));
  }

  /// The example and its partners, and random numbers for each.
  std::vector<int64_t> members_of(int64_t index, Random& random,
                                  std::vector<Random>& randoms) const {
    Random choice = split_off(random);
    if (is_fixed_) choice = random_of_fixed_example(index);
    std::vector<int64_t> members = {index};
    for (size_t i = 0; i < prefixes_.size(); ++i) members.push_back(partner(members, choice));
    for (size_t i = 0; i < members.size(); ++i) randoms.push_back(split_off(random));
    return members;
  }

  /// Draws another example of the group; examples repeat only when the group is too small.
  int64_t partner(const std::vector<int64_t>& members, Random& choice) const {
    const int64_t place = place_[static_cast<size_t>(members[0])];
    const auto next = std::upper_bound(begins_.begin(), begins_.end(), place);
    const int64_t begin = *(next - 1);
    const int64_t count = *next - begin;
    std::vector<int64_t> taken;  // places to skip, sorted
    for (size_t i = may_be_itself_ ? 1 : 0; i < members.size(); ++i) {
      taken.push_back(place_[static_cast<size_t>(members[i])]);
    }
    std::sort(taken.begin(), taken.end());
    taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
    if (static_cast<int64_t>(taken.size()) >= count) {  // the group is too small, so examples
                                                        // repeat
      taken.clear();
      if (!may_be_itself_ && count > 1) taken.push_back(place);
    }
    int64_t chosen = begin + choice.below(count - static_cast<int64_t>(taken.size()));
    for (const int64_t other : taken) chosen += chosen >= other ? 1 : 0;
    return sorted_[static_cast<size_t>(chosen)];
  }

  /// Partner `number` of every example, when partners are fixed.
  at::Tensor partners(size_t number) const {
    const at::Tensor all = at::empty({size()}, at::kLong);
    auto* values = all.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < size(); ++i) {
      Random random(0);
      std::vector<Random> unused;
      values[i] = members_of(i, random, unused)[number + 1];
    }
    return all;
  }

  static Batch rows(const Batch& all, size_t begin, size_t count) {
    OrderedMap<at::Tensor> tensors;
    for (const auto& [key, tensor] : all.tensors()) {
      tensors.set(key, tensor.narrow(0, static_cast<int64_t>(begin), static_cast<int64_t>(count)));
    }
    OrderedMap<std::vector<std::string>> texts;
    for (const auto& [key, values] : all.texts()) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
      texts.set(key, std::vector<std::string>(first, first + static_cast<std::ptrdiff_t>(count)));
    }
    return {std::move(tensors), std::move(texts), {}};
  }

  Source source_;
  bool is_fixed_;
  bool may_be_itself_;
  std::vector<std::string> prefixes_;  ///< The prefixes with the slash: `partner/`.
  std::vector<int64_t> sorted_;        ///< The source's indices, sorted by the label's value.
  std::vector<int64_t> place_;         ///< The place of each index in `sorted_`.
  std::vector<int64_t> begins_;        ///< The beginning of each value in `sorted_`, and the end of
                                       ///< `sorted_`.
};

STEPOP_REGISTER_DATASET(
    Joined, {"Each example with a random other one that has the same value of a label."});

}  // namespace
}  // namespace stepop
