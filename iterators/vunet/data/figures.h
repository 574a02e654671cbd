#pragma once

#include "iterators/vunet/data/figure.h"
#include "runtime/data/dataset.h"

namespace stepop::vunet {

/// Synthetic people: clothed figures in random poses, so that appearance and pose are independent
/// factors, and the correct output of a network is known. No download; the same seed gives the same
/// examples on every machine.
///
/// Example i shows person i mod `num_people`: `target` in one pose, `appearance` in another pose,
/// and `stickman`, the target's joints drawn by draw_stickman; each float [3, size, size] in
/// [-1, 1]. `person`, int64 [], is the person's number.
///
/// `offset` is the number of the first person and of the first pair of poses: two datasets of one
/// seed share no person and no pose when they share no numbers, so a validation split with an
/// offset beyond `examples` and `num_people` of the training split is held out. With `keypoints`
/// the target's joints are added, float [18, 2], in pixels, (0, 0) for hidden joints.
class Figures : public Dataset {
 public:
  struct Params {
    int64_t size = 64;
    int64_t examples = 10000;
    int64_t num_people = 1000;
    int64_t seed = 0;
    int64_t offset = 0;
    StickmanStyle style{.line_width = 2, .joint_radius = 1};  ///< For small images.
    bool keypoints = false;

    void declare(Parameters& p);
  };

  explicit Figures(const Params& params) : p_(params) {}

  int64_t size() const override { return p_.examples; }
  Example get(int64_t index, Random& random) const override;
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override;
  /// For "person", the people's numbers, int64 [size()].
  at::Tensor labels(std::string_view key) const override;
  std::vector<std::string> label_keys() const override { return {"person"}; }

  /// The person of example `index`. draw_figure with another example's pose draws the true picture
  /// of this person in that pose.
  Appearance appearance_of(int64_t index) const;
  Pose pose_of(int64_t index) const;             ///< The pose of `target` and `stickman`.
  Pose appearance_pose_of(int64_t index) const;  ///< The pose of `appearance`.
  int64_t person_of(int64_t index) const { return p_.offset + index % p_.num_people; }
  int64_t image_size() const { return p_.size; }

 private:
  /// Writes the three images of an example, 3 * image_size * image_size numbers each.
  void draw(int64_t index, float* stickman, float* appearance, float* target) const;

  Params p_;
};

}  // namespace stepop::vunet
