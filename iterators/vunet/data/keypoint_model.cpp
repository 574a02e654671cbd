#include "iterators/vunet/data/keypoint_model.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace stepop::vunet {
namespace {

constexpr const char* kKeypointModel = "keypoint_model";
constexpr int64_t kMostJoints = 1000;

/// COCO's order: nose, eyes, ears, shoulders, elbows, wrists, hips, knees, ankles, the left one
/// first; 17 is the neck.
const KeypointModel& coco_17() {
  static const KeypointModel model = {.joints = 17,
                                      .midpoints = {{5, 6}},
                                      .body = {17, 6, 12, 11, 5},
                                      .right = {{6, 8}, {8, 10}, {6, 12}, {12, 14}, {14, 16}},
                                      .middle = {{4, 2}, {2, 0}, {0, 1}, {1, 3}, {0, 17}},
                                      .left = {{5, 7}, {7, 9}, {5, 11}, {11, 13}, {13, 15}}};
  return model;
}

/// The order of OpenPose's BODY_25: 8 is the middle of the hips, 19 to 24 are big toe, small toe
/// and heel of the left foot, then of the right one.
const KeypointModel& body_25() {
  static const KeypointModel model = {
      .joints = 25,
      .midpoints = {},
      .body = {1, 2, 9, 12, 5},
      .right = {{2, 3}, {3, 4}, {2, 9}, {9, 10}, {10, 11}, {11, 22}, {22, 23}, {11, 24}},
      .middle = {{17, 15}, {15, 0}, {0, 16}, {16, 18}, {0, 1}},
      .left = {{5, 6}, {6, 7}, {5, 12}, {12, 13}, {13, 14}, {14, 19}, {19, 20}, {14, 21}}};
  return model;
}

size_t to_joint(const Config& params, std::string_view key, int64_t joint, size_t count) {
  if (joint >= 0 && joint < static_cast<int64_t>(count)) return static_cast<size_t>(joint);
  throw params.error(key, fmt::format("joint {} is not there: they are 0 to {}", joint, count - 1));
}

/// Pairs of joints below `count`: [[2, 3], [3, 4]].
KeypointModel::Pairs read_pairs(const Config& params, const std::string& key, size_t count) {
  KeypointModel::Pairs pairs;
  if (!params.has(key)) return pairs;
  const auto value = params.get<Value>(key);
  const size_t length = value.is_list() ? value.as_list().size() : 0;
  if (!value.is_list()) {
    throw params.error(key,
                       "expected pairs of joints, [[2, 3], [3, 4]], found " + value.describe());
  }
  for (size_t i = 0; i < length; ++i) {
    const std::string place = join_path(key, std::to_string(i));
    const auto pair = params.get<std::vector<int64_t>>(place);
    if (pair.size() != 2) {
      throw params.error(place, fmt::format("expected two joints, [2, 3], found {}", pair.size()));
    }
    pairs.emplace_back(to_joint(params, place, pair[0], count),
                       to_joint(params, place, pair[1], count));
  }
  return pairs;
}

KeypointModel read_own_model(const Config& params) {
  KeypointModel model;
  if (!params.has("joints")) params.get<int64_t>("joints");  // throws for the missing key
  model.joints = static_cast<size_t>(params.get_between("joints", 1, kMostJoints, 1));
  model.midpoints = read_pairs(params, "midpoints", model.joints);
  const size_t count = model.joints + model.midpoints.size();
  for (const int64_t corner : params.get("body", std::vector<int64_t>{})) {
    model.body.push_back(to_joint(params, "body", corner, count));
  }
  model.right = read_pairs(params, "right", count);
  model.middle = read_pairs(params, "middle", count);
  model.left = read_pairs(params, "left", count);
  return model;
}

}  // namespace

const KeypointModel& openpose_18() {
  static const KeypointModel model = {.joints = 18,
                                      .midpoints = {},
                                      .body = {1, 2, 8, 11, 5},
                                      .right = {{2, 3}, {3, 4}, {2, 8}, {8, 9}, {9, 10}},
                                      .middle = {{16, 14}, {14, 0}, {0, 15}, {15, 17}, {0, 1}},
                                      .left = {{5, 6}, {6, 7}, {5, 11}, {11, 12}, {12, 13}}};
  return model;
}

KeypointModel get_keypoint_model(const Config& params) {
  const Value* value = params.peek(kKeypointModel);
  if (value != nullptr && value->is_map()) return read_own_model(params.at(kKeypointModel));
  const auto name = params.get(kKeypointModel, "openpose_18");
  if (name == "openpose_18") return openpose_18();
  if (name == "coco_17") return coco_17();
  if (name == "body_25") return body_25();
  throw params.error(kKeypointModel,
                     fmt::format("expected openpose_18, coco_17, body_25 or a map of your own, "
                                 "found \"{}\"",
                                 name));
}

}  // namespace stepop::vunet
