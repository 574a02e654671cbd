#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/core/base/random.h"

namespace stepop::vunet {

/// Chooses another image of the same person for each image.
class Partners {
 public:
  /// `people`: the person of each row, from 0.
  Partners(const std::vector<int64_t>& people, bool is_random) : is_random_(is_random) {
    for (size_t row = 0; row < people.size(); ++row) {
      const auto person = static_cast<size_t>(people[row]);
      rows_of_.resize(std::max(rows_of_.size(), person + 1));
      places_.push_back({person, rows_of_[person].size()});
      rows_of_[person].push_back(row);
    }
  }
  Partners() = default;

  /// Another row of the same person, drawn by `random`, or else the next row, cyclically; the row
  /// itself if the person has no other row.
  size_t partner_of(size_t row, Random& random) const {
    const auto& rows = rows_of_[places_[row].person];
    if (rows.size() == 1) return row;
    const size_t others = rows.size() - 1;
    const auto ahead =
        is_random_ ? static_cast<size_t>(random.below(static_cast<int64_t>(others))) + 1 : 1;
    return rows[(places_[row].place + ahead) % rows.size()];
  }

 private:
  struct Place {
    size_t person;
    size_t place;  ///< The position among this person's rows.
  };

  bool is_random_ = true;
  std::vector<Place> places_;
  std::vector<std::vector<size_t>> rows_of_;  ///< The rows of each person.
};

}  // namespace stepop::vunet
