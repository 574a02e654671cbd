#include "runtime/train/networks/evaluation_mode.h"

#include <torch/nn/module.h>

namespace stepop {

EvaluationMode::EvaluationMode(torch::nn::Module& network)
    : network_(network), was_training_(network.is_training()) {
  if (!was_training_) return;
  for (const auto& part : network.modules(/*include_self=*/false)) {
    if (!part->is_training()) evaluating_.push_back(part);
  }
  network.eval();
}

EvaluationMode::~EvaluationMode() {
  if (!was_training_) return;
  network_.train();
  for (const auto& part : evaluating_) part->eval();
}

}  // namespace stepop
