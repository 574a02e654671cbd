#pragma once

#include <memory>
#include <vector>

namespace torch::nn {
class Module;
}

namespace stepop {

/// While it lives, a network is in evaluation mode, as a log op that samples from it wants it:
/// `const EvaluationMode guard(*model_);`. Afterwards each of its modules is in the mode that it
/// had. It leaves gradients as they are: log and eval ops have none, a train op that wants none
/// also needs an at::NoGradGuard.
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
  std::vector<std::shared_ptr<torch::nn::Module>> evaluating_;  ///< Parts that were so before.
};

}  // namespace stepop
