#include "iterators/vunet/data/pose_pairs_params.h"

namespace stepop::vunet {

void PosePairsParams::declare(Parameters& p) {
  const Config* config =
      p.describe({.name = "dataset",
                  .default_value = "none",
                  .about = "instead of path: examples with an image and keypoints",
                  .type = {.kind = "component dataset"}});
  const bool has_dataset = config != nullptr && config->has("dataset");
  if (has_dataset) {
    dataset = datasets().build(*config, "dataset");
    if (config->has("path")) throw config->error("path", "\"dataset\" is given as well");
  } else {
    p.require("path", path, "table with the columns image, x0, y0, ..., x17, y17 and person");
  }
  p.require("size", size, "pixels a side to resize to", at_least(1).at_most(kMostStickmanSize));
  p.add("pairs", pairs, "random, or fixed: each row with the person's next one, for evaluations",
        one_of({"random", "fixed"}));
  declare_stickman_style(p, style);
  const Config* of_model = p.describe(
      {.name = "keypoint_model",
       .default_value = "openpose_18",
       .about = "which joints there are: openpose_18, coco_17, body_25, or a map {joints: 21, "
                "midpoints: [[5, 6]], body: [...], right: [[2, 3], ...], middle: [...], left: "
                "[...]}",
       .type = {.kind = "text | map"}});
  if (of_model != nullptr) model = get_keypoint_model(*of_model);
  if (config != nullptr && !has_dataset) return;
  p.add("image", image, "with dataset: the key of the image");
  p.add("keypoints", keypoints, "with dataset: the key of the joints [18, 2 or more], x and y");
  p.add("relative", relative, "with dataset: joints are parts of width and height, not pixels");
  p.add("person", person, "with dataset: the label that tells people apart; null: all are one");
}

}  // namespace stepop::vunet
