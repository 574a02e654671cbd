#pragma once

#include <string>
#include <vector>

#include "iterators/vunet/data/partners.h"
#include "iterators/vunet/data/pose_pairs_params.h"
#include "iterators/vunet/data/stickman.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/tables/csv_columns.h"

namespace stepop::vunet {

/// Pairs of images of one person in two poses, from a table of images, keypoints and people.
///
/// The table is a CSV file (as Csv reads it) with the columns `image`, the path of a PNG or JPEG
/// relative to the table; `x0`, `y0` to `x17`, `y17`, or as many as `keypoint_model` has, the
/// joints in pixels of that image, (0, 0) for an absent joint; and `person`, any text. Other
/// columns are ignored.
///
/// Row i is the target of example i; its appearance comes from another row of the same person, or
/// from row i if there is no other: another row each time, drawn by the example's own generator, or
/// the person's next row, cyclically, as evaluations need it.
///
/// An example holds `stickman`, `appearance` and `target`, float [3, size, size] in [-1, 1],
/// `person`, int64 [], the person's place among all names, sorted, and the texts `target_path` and
/// `appearance_path`. Throws Error with file, line and column for an invalid or non-finite number,
/// and for a missing or damaged image.
class PosePairs : public Dataset {
 public:
  explicit PosePairs(const PosePairsParams& params);

  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  Example get(int64_t index, Random& random) const override;
  /// For "person", the person of each example, int64 [size()].
  at::Tensor labels(std::string_view key) const override;
  std::vector<std::string> label_keys() const override { return {"person"}; }

 private:
  struct Row {
    std::string image;          ///< Absolute path.
    std::vector<Joint> joints;  ///< Pixels of the stored image.
    int64_t person = 0;
    int64_t line = 0;  ///< The line in the table.
  };

  void take_column(const CsvColumn& column);
  at::Tensor read_image_of(const Row& row) const;
  /// The stick figure for an image that is stored with this size.
  at::Tensor stickman_of(const Row& row, int64_t height, int64_t width) const;

  std::string path_;
  int64_t image_size_;
  StickmanStyle style_;
  KeypointModel model_;
  std::vector<Row> rows_;
  Partners partners_;
};

}  // namespace stepop::vunet
