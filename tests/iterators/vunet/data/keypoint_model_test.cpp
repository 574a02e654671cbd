// Each model of keypoints against the picture of OpenPose's 18, which an independent drawing
// checks.
#include "iterators/vunet/data/keypoint_model.h"

#include <doctest/doctest.h>

#include "iterators/vunet/data/figures.h"
#include "iterators/vunet/data/stickman.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop::vunet {
namespace keypoint_model_test {

constexpr int64_t kSide = 128;

KeypointModel model_of(const std::string& yaml) {
  return get_keypoint_model(Config(parse_yaml("keypoint_model: " + yaml, {"test.yaml", 0})));
}

/// A made-up person whose neck is in the middle of both shoulders, where these are seen.
Joints person(int64_t number) {
  const Figures figures({.size = 64, .examples = 8});
  Joints joints = joints_of(figures.pose_of(number), kSide);
  if (joints[2].is_absent() || joints[5].is_absent()) return joints;
  joints[1] = {(joints[2].x + joints[5].x) / 2, (joints[2].y + joints[5].y) / 2};
  return joints;
}

/// The joints in another order; -1: absent.
std::vector<Joint> ordered(const Joints& joints, const std::vector<int>& order) {
  std::vector<Joint> others;
  for (const int from : order) {
    others.push_back(from < 0 ? Joint{} : joints[static_cast<size_t>(from)]);
  }
  return others;
}

const std::vector<int> kCoco = {0, 15, 14, 17, 16, 5, 2, 6, 3, 7, 4, 11, 8, 12, 9, 13, 10};
const std::vector<int> kBody25 = {0,  1,  2,  3,  4,  5,  6,  7,  -1, 8,  9,  10, 11,
                                  12, 13, 14, 15, 16, 17, -1, -1, -1, -1, -1, -1};

TEST_CASE(
    "COCO's 17 keypoints give the picture of OpenPose's 18, with the neck between shoulders") {
  int compared = 0;
  for (int64_t i = 0; i < 8; ++i) {
    const Joints joints = person(i);
    if (joints[2].is_absent() || joints[5].is_absent()) continue;
    ++compared;
    CHECK(draw_stickman(ordered(joints, kCoco), kSide, {}, model_of("coco_17"))
              .equal(draw_stickman(joints, kSide)));
  }
  CHECK(compared > 3);
}

TEST_CASE("without a shoulder there is no neck between shoulders") {
  Joints joints = person(0);
  REQUIRE_FALSE(joints[5].is_absent());
  joints[2] = {};
  std::vector<Joint> coco = ordered(joints, kCoco);
  joints[1] = {};
  CHECK(draw_stickman(coco, kSide, {}, model_of("coco_17")).equal(draw_stickman(joints, kSide)));
}

TEST_CASE("BODY_25 without feet gives the picture of OpenPose's 18, and feet come to it") {
  const Joints joints = person(3);
  std::vector<Joint> all = ordered(joints, kBody25);
  const at::Tensor expected = draw_stickman(joints, kSide);
  CHECK(draw_stickman(all, kSide, {}, model_of("body_25")).equal(expected));
  all[22] = {joints[10].x + 6, joints[10].y + 3};
  const at::Tensor with_foot = draw_stickman(all, kSide, {}, model_of("body_25"));
  const at::Tensor differs = with_foot.ne(expected);
  CHECK(differs[0].any().item<bool>());  // red, the right side
  CHECK_FALSE(differs[1].any().item<bool>());
  CHECK_FALSE(differs[2].any().item<bool>());
}

TEST_CASE("a model of one's own is a number of joints and what connects them") {
  const KeypointModel model = model_of(
      "{joints: 18, body: [1, 2, 8, 11, 5], right: [[2, 3], [3, 4], [2, 8], [8, 9], [9, 10]], "
      "middle: [[16, 14], [14, 0], [0, 15], [15, 17], [0, 1]], left: [[5, 6], [6, 7], [5, 11], "
      "[11, 12], [12, 13]]}");
  const Joints joints = person(5);
  CHECK(draw_stickman(joints, kSide, {}, model).equal(draw_stickman(joints, kSide)));
  // A hand: one line from the middle of two points to a third.
  const KeypointModel hand = model_of("{joints: 3, midpoints: [[0, 1]], left: [[3, 2]]}");
  const std::vector<Joint> points = {{10, 10}, {20, 10}, {15, 30}};
  const at::Tensor image = draw_stickman(points, 40, {.line_width = 1, .joint_radius = 0}, hand);
  const at::Tensor blue = image[2].gt(0);
  CHECK(blue.slice(0, 10, 30).any(1).all().item<bool>());
  CHECK(blue.sum().item<int64_t>() == blue.narrow(1, 14, 2).sum().item<int64_t>());
}

TEST_CASE("a wrong model says which joint or key it is") {
  const auto message = [](const std::string& yaml) { return message_of([&] { model_of(yaml); }); };
  CHECK(message("coco") ==
        "test.yaml:1: keypoint_model: expected openpose_18, coco_17, body_25 or a map of your "
        "own, found \"coco\"");
  CHECK(message("{right: [[0, 1]]}").starts_with("test.yaml:1: keypoint_model/joints: missing"));
  CHECK(message("{joints: 2, right: [[0, 2]]}") ==
        "test.yaml:1: keypoint_model/right/0: joint 2 is not there: they are 0 to 1");
  CHECK(message("{joints: 2, right: [[0, 1, 1]]}") ==
        "test.yaml:1: keypoint_model/right/0: expected two joints, [2, 3], found 3");
  CHECK(message("{joints: 2, right: 3}") ==
        "test.yaml:1: keypoint_model/right: expected pairs of joints, [[2, 3], [3, 4]], found 3");
  CHECK(message_of([] { draw_stickman(std::vector<Joint>(4), 8); }) ==
        "expected 18 joints, found 4");
}

}  // namespace keypoint_model_test
}  // namespace stepop::vunet
