#pragma once

#include <string>

namespace stepop {

/// Two steps of a tiny flow of four classes; `more` are further lines, at first of its model.
inline std::string flow_config(const std::string& more) {
  return R"(
iterator: Trainer
num_threads: 1
batch_size: 4
num_steps: 2
optimizer: {class: AdamW, lr: 1e-2}
datasets: {train: {class: Synthetic, size: 12, shape: [1, 4, 4], classes: 4}}
model:
  class: RectifiedFlow
  network: {class: DiT, image_size: [4, 4], channels: 1, hidden_size: 8, depth: 1, num_heads: 2, num_classes: 4}
  shape: [1, 4, 4]
  steps: 2
)" + more;
}

}  // namespace stepop
