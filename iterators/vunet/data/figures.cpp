#include "iterators/vunet/data/figures.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include "runtime/data/dataset.h"

namespace stepop::vunet {
namespace {

constexpr int64_t kLeastSize = 32;
constexpr int64_t kMostNumber = int64_t{1} << 40;

int64_t get_between(const Config& params, const char* key, int64_t least, int64_t most,
                    int64_t fallback) {
  const int64_t number = params.get_at_least(key, least, fallback);
  if (number <= most) return number;
  throw params.error(key, fmt::format("expected {} or less, found {}", most, number));
}

}  // namespace

Figures::Figures(const Config& params)
    : image_size_(get_between(params, "size", kLeastSize, kMostStickmanSize, 64)),
      examples_(get_between(params, "examples", 1, kMostNumber, 10000)),
      num_people_(get_between(params, "num_people", 1, kMostNumber, 1000)),
      seed_(static_cast<uint64_t>(params.get_at_least("seed", 0, 0))),
      offset_(get_between(params, "offset", 0, kMostNumber, 0)),
      style_(get_stickman_style(params, {.line_width = 2, .joint_radius = 1})),
      has_keypoints_(params.get("keypoints", false)) {}

Appearance Figures::appearance_of(int64_t index) const {
  check_index(index, examples_);
  Random random(mix_seed({seed_, seed_of("person"), static_cast<uint64_t>(person_of(index))}));
  return random_appearance(random);
}

Pose Figures::pose_of(int64_t index) const {
  check_index(index, examples_);
  Random random(mix_seed({seed_, seed_of("pose"), static_cast<uint64_t>(offset_ + index)}));
  return random_pose(random);
}

Pose Figures::appearance_pose_of(int64_t index) const {
  check_index(index, examples_);
  Random random(
      mix_seed({seed_, seed_of("appearance pose"), static_cast<uint64_t>(offset_ + index)}));
  return random_pose(random);
}

void Figures::draw(int64_t index, float* stickman, float* appearance, float* target) const {
  const Appearance person = appearance_of(index);
  const Pose pose = pose_of(index);
  draw_stickman(joints_of(pose, image_size_), image_size_, style_, openpose_18(), stickman);
  draw_figure(person, appearance_pose_of(index), image_size_, appearance);
  draw_figure(person, pose, image_size_, target);
}

Example Figures::get(int64_t index, Random& /*random*/) const {
  const auto empty_image = [&] { return at::empty({3, image_size_, image_size_}, at::kFloat); };
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
  if (!has_keypoints_) return example;
  at::Tensor keypoints = at::empty({std::tuple_size_v<Joints>, 2}, at::kFloat);
  auto* number = keypoints.mutable_data_ptr<float>();
  for (const Joint& joint : joints_of(pose_of(index), image_size_)) {
    *number++ = static_cast<float>(joint.x);
    *number++ = static_cast<float>(joint.y);
  }
  example.tensors.set("keypoints", keypoints);
  return example;
}

std::optional<Batch> Figures::get_batch(std::span<const int64_t> indices,
                                        std::span<Random> /*randoms*/) const {
  if (has_keypoints_) return std::nullopt;
  const auto count = static_cast<int64_t>(indices.size());
  const auto empty_images = [&] {
    return at::empty({count, 3, image_size_, image_size_}, at::kFloat);
  };
  at::Tensor stickmen = empty_images();
  at::Tensor appearances = empty_images();
  at::Tensor targets = empty_images();
  at::Tensor people = at::empty({count}, at::kLong);
  auto* stickman = stickmen.mutable_data_ptr<float>();
  auto* appearance = appearances.mutable_data_ptr<float>();
  auto* target = targets.mutable_data_ptr<float>();
  auto* person = people.mutable_data_ptr<int64_t>();
  const int64_t values = 3 * image_size_ * image_size_;
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
  at::Tensor people = at::empty({examples_}, at::kLong);
  auto* person = people.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < examples_; ++i) person[i] = person_of(i);
  return people;
}

STEPOP_REGISTER_DATASET(
    Figures,
    {"Made-up clothed people in random poses: stick figure, appearance and target.",
     {{"size", "64", "pixels a side"},
      {"examples", "10000", "how many"},
      {"num_people", "1000", "example i shows person i mod num_people"},
      {"seed", "0", "of the people and the poses"},
      {"offset", "0", "number of the first person and pose; beyond those of train: held out"},
      {"line_width", "2", "of the stick figure, in pixels"},
      {"joint_radius", "1", "of the stick figure, in pixels"},
      {"keypoints", "false", "true: keypoints as well, the joints of the target in pixels"}}});

}  // namespace stepop::vunet
