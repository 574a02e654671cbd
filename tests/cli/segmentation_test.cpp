// A U-Net of Python over masks with void pixels, beside PyTorch's own loop.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/digits_run.h"
#include "tests/python.h"

namespace stepop {
namespace cli_segmentation_test {

constexpr const char* kNet = R"(import torch
from torch import nn

class UNet(nn.Module):
    def __init__(self, width=8, classes=3):
        super().__init__()
        block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
        self.down, self.deep, self.pool = block(3, width), block(width, 2 * width), nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.last = nn.Sequential(block(2 * width, width), nn.Conv2d(width, classes, 1))
    def forward(self, image):
        first = self.down(image)
        return self.last(torch.cat([first, self.up(self.deep(self.pool(first)))], 1))
)";

constexpr const char* kYaml = R"(
iterator: Classifier
target: mask
ignore: 255
label_smoothing: 0.1
class_weights: [1, 2, 0.5]
model: {class: Exported, path: unet.pt2}
init_from: first.pth
datasets:
  train: {class: Npy, files: {image: images.npy, mask: masks.npy}}
  validation: {class: Npy, files: {image: images.npy, mask: masks.npy}}
samplers: {train: sequential}
batch_size: 4
test_batch_size: 7
num_steps: 10
log_freq: 1
optimizer: {class: Adam, lr: 1e-2}
num_threads: 1
)";

TEST_CASE(
    "ten steps of a segmentation have the losses of PyTorch's own loop, and torchmetrics' IoU") {
  const ScratchFolder folder;
  folder.write("unet.py", kNet);
  folder.write("a.yaml", kYaml);
  run_well(folder, "export PYTHONPATH='" STEPOP_SOURCE_DIR "/eval_out/python'; '" STEPOP_SOURCE_DIR
                   "/.venv/bin/python3' -B -m stepop.eval.export unet.py:UNet --example "
                   "image=4,3,16,16 -o unet.pt2");
  run_python("import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0])",
             {STEPOP_SOURCE_DIR "/tests/cli/segmentation_training.py", folder.path()});
  run_well(folder, "stepop -n a -b a.yaml -t", "the same examples as datasets/train");
  const auto expected = nlohmann::json::parse(read_bytes(folder.path("losses.json")));
  nlohmann::json last;
  std::vector<double> losses;
  for (const auto& line :
       lines_of(read_bytes(folder.path(only_run(folder)) + "/train/metrics.jsonl"))) {
    const auto row = nlohmann::json::parse(line);
    if (row.contains("train/log_op/loss")) losses.push_back(row.at("train/log_op/loss"));
    last.update(row);
  }
  REQUIRE(losses.size() == 10);
  for (size_t i = 0; i < losses.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(losses[i] - expected.at("losses")[i].get<double>()) < 1e-5);
  }
  const auto is_near = [&](const std::string& name, const char* key) {
    CAPTURE(name);
    CHECK(std::abs(last.at(name).get<double>() - expected.at(key).get<double>()) < 1e-5);
  };
  is_near("validation/eval_op/loss", "evaluation");
  is_near("validation/eval_op/accuracy/accuracy", "accuracy");
  is_near("validation/eval_op/iou/MeanIoU", "iou");
}

}  // namespace cli_segmentation_test
}  // namespace stepop
