#include "iterators/vunet/data/figures.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include "runtime/data/dataset.h"

namespace stepop::vunet {
namespace {

constexpr int64_t kLeastSize = 32;
constexpr int64_t kMostNumber = int64_t{1} << 40;

}  // namespace

void Figures::Params::declare(Parameters& p) {
  p.add("size", size, "pixels a side", at_least(kLeastSize).at_most(kMostStickmanSize));
  p.add("examples", examples, "how many", at_least(1).at_most(kMostNumber));
  p.add("num_people", num_people, "example i shows person i mod num_people",
        at_least(1).at_most(kMostNumber));
  p.add("seed", seed, "of the people and the poses", at_least(0));
  p.add("offset", offset, "number of the first person and pose; beyond those of train: held out",
        at_least(0).at_most(kMostNumber));
  declare_stickman_style(p, style);
  p.add("keypoints", keypoints, "true: keypoints as well, the joints of the target in pixels");
}

Appearance Figures::appearance_of(int64_t index) const {
  check_index(index, p_.examples);
  Random random(mix_seed({static_cast<uint64_t>(p_.seed), seed_of("person"),
                          static_cast<uint64_t>(person_of(index))}));
  return random_appearance(random);
}

Pose Figures::pose_of(int64_t index) const {
  check_index(index, p_.examples);
  Random random(mix_seed(
      {static_cast<uint64_t>(p_.seed), seed_of("pose"), static_cast<uint64_t>(p_.offset + index)}));
  return random_pose(random);
}

Pose Figures::appearance_pose_of(int64_t index) const {
  check_index(index, p_.examples);
  Random random(mix_seed({static_cast<uint64_t>(p_.seed), seed_of("appearance pose"),
                          static_cast<uint64_t>(p_.offset + index)}));
  return random_pose(random);
}

void Figures::draw(int64_t index, float* stickman, float* appearance, float* target) const {
  const Appearance person = appearance_of(index);
  const Pose pose = pose_of(index);
  draw_stickman(joints_of(pose, p_.size), p_.size, p_.style, openpose_18(), stickman);
  draw_figure(person, appearance_pose_of(index), p_.size, appearance);
  draw_figure(person, pose, p_.size, target);
}

Example Figures::get(int64_t index, Random& /*random*/) const {
  const auto empty_image = [&] { return at::empty({3, p_.size, p_.size}, at::kFloat); };
  at::Tensor stickman = empty_image();
  at::Tensor appearance = empty_image();
  at::Tensor target = empty_image();
  draw(index, stickman.mutable_data_ptr<float>(), appearance.mutable_data_ptr<float>(),
       target.mutable_data_ptr<float>());
  Example example{.tensors = {{"stickman", stickman},
                              {"appearance", appearance},
                              {"target", target},
                              {"person", at::scalar_tensor(person_of(index), at::kLong)}},
                  .texts = {}};
  if (!p_.keypoints) return example;
  at::Tensor keypoints = at::empty({std::tuple_size_v<Joints>, 2}, at::kFloat);
  auto* number = keypoints.mutable_data_ptr<float>();
  for (const Joint& joint : joints_of(pose_of(index), p_.size)) {
    *number++ = static_cast<float>(joint.x);
    *number++ = static_cast<float>(joint.y);
  }
  example.tensors.set("keypoints", keypoints);
  return example;
}

std::optional<Batch> Figures::get_batch(std::span<const int64_t> indices,
                                        std::span<Random> /*randoms*/) const {
  if (p_.keypoints) return std::nullopt;
  const auto count = static_cast<int64_t>(indices.size());
  const auto empty_images = [&] { return at::empty({count, 3, p_.size, p_.size}, at::kFloat); };
  at::Tensor stickmen = empty_images();
  at::Tensor appearances = empty_images();
  at::Tensor targets = empty_images();
  at::Tensor people = at::empty({count}, at::kLong);
  auto* stickman = stickmen.mutable_data_ptr<float>();
  auto* appearance = appearances.mutable_data_ptr<float>();
  auto* target = targets.mutable_data_ptr<float>();
  auto* person = people.mutable_data_ptr<int64_t>();
  const int64_t values = 3 * p_.size * p_.size;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)];
    draw(index, stickman + i * values, appearance + i * values, target + i * values);
    person[i] = person_of(index);
  }
  return Batch({{"stickman", stickmen},
                {"appearance", appearances},
                {"target", targets},
                {"person", people}},
               {}, std::vector<int64_t>(indices.begin(), indices.end()));
}

at::Tensor Figures::labels(std::string_view key) const {
  if (key != "person") return {};
  at::Tensor people = at::empty({p_.examples}, at::kLong);
  auto* person = people.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < p_.examples; ++i) person[i] = person_of(i);
  return people;
}

STEPOP_REGISTER_DATASET(
    Figures, {"Made-up clothed people in random poses: stick figure, appearance and target."});

}  // namespace stepop::vunet
