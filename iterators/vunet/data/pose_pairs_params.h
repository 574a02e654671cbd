#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "iterators/vunet/data/keypoint_model.h"
#include "iterators/vunet/data/stickman.h"
#include "runtime/data/dataset.h"

namespace stepop::vunet {

/// The parameters of PosePairs, from a table or from another dataset.
struct PosePairsParams {
  std::unique_ptr<Dataset> dataset;
  InputFile path;
  int64_t size = 0;
  std::string pairs = "random";
  StickmanStyle style;
  KeypointModel model;
  std::string image = "image";
  std::string keypoints = "keypoints";
  bool relative = false;
  std::optional<std::string> person;

  bool is_random() const { return pairs == "random"; }
  void declare(Parameters& p);
};

}  // namespace stepop::vunet
