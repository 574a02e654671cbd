#pragma once

#include <memory>
#include <vector>

namespace torch::nn {
class Module;
}

namespace stepop {

/// During its lifetime, a network is in evaluation mode, for example for a log op that samples from
/// it: `const EvaluationMode guard(*model_);`. Afterwards each module is back in its previous mode.
/// Gradients are not affected: log and eval ops have none; a train op without gradients also needs
/// an at::NoGradGuard.
class EvaluationMode {
 public:
  /// The network must outlive this.
  explicit EvaluationMode(torch::nn::Module& network);
  ~EvaluationMode();
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& network_;
  bool was_training_;
  std::vector<std::shared_ptr<torch::nn::Module>> evaluating_;  ///< Before this guard.
};

}  // namespace stepop
