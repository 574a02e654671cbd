#pragma once

#include "iterators/vunet/data/figure.h"
#include "runtime/data/dataset.h"

namespace stepop::vunet {

/// Made-up people: clothed figures in random poses, so that appearance and pose are factors of
/// their own, and what a network should have drawn is known. No download; the same seed gives the
/// same examples on every machine.
///
/// Example i shows person i mod `num_people`: `target` in one pose, `appearance` in another one,
/// and `stickman`, the joints of the target as draw_stickman draws them; each float
/// [3, size, size] in [-1, 1]. `person`, int64 [], is the person's number.
///
/// Parameters: `size` = 64, pixels a side, 32 to 4096; `examples` = 10000; `num_people` = 1000;
/// `seed` = 0; `offset` = 0, the number of the first person and of the first pair of poses: two
/// datasets of one seed share nobody and no pose when they share no numbers, so a validation split
/// with an offset beyond `examples` and `num_people` of the training is held out; `line_width` = 2
/// and `joint_radius` = 1 of the stick figure, in pixels, as small images need them; `keypoints`,
/// true for the joints of the target as `keypoints`, float [18, 2], in pixels, (0, 0) for hidden
/// ones.
class Figures : public Dataset {
 public:
  explicit Figures(const Config& params);

  int64_t size() const override { return examples_; }
  Example get(int64_t index, Random& random) const override;
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override;
  /// For "person" the people's numbers, int64 [size()].
  at::Tensor labels(std::string_view key) const override;
  std::vector<std::string> label_keys() const override { return {"person"}; }

  /// What example `index` is drawn from. With draw_figure, the true picture of one example's person
  /// in another one's pose.
  Appearance appearance_of(int64_t index) const;
  Pose pose_of(int64_t index) const;             ///< In `target` and `stickman`.
  Pose appearance_pose_of(int64_t index) const;  ///< In `appearance`.
  int64_t person_of(int64_t index) const { return offset_ + index % num_people_; }
  int64_t image_size() const { return image_size_; }

 private:
  /// Writes the three images of an example, 3 * image_size * image_size numbers each.
  void draw(int64_t index, float* stickman, float* appearance, float* target) const;

  int64_t image_size_;
  int64_t examples_;
  int64_t num_people_;
  uint64_t seed_;
  int64_t offset_;
  StickmanStyle style_;
  bool has_keypoints_;
};

}  // namespace stepop::vunet
