#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/optimizer.h"

namespace torch::optim {
class Adam;
}

namespace stepop::bench {

/// The loop that a user would write with LibTorch alone, around the network and the dataset of a
/// config: forward, mean cross entropy, backward, Adam. It begins with the weights, and goes
/// through the batches, of a run with seed 1.
class HandWrittenLoop {
 public:
  enum class Data {
    kGathered,  ///< `Dataset::get_batch` at shuffled indices in every step.
    kPrepared,  ///< Batches that were made before the time is taken: a step's data costs nothing.
  };
  enum class Optimizer {
    kFusedKernel,  ///< `at::_fused_adam_`, with no more than it needs: the least that a step costs.
    kFusedSgd,     ///< The same of `at::_fused_sgd_`, with a momentum of 0.9.
    kTorchOptim,   ///< `torch::optim::Adam`.
  };

  enum class Convolutions {
    kByOneDnn,  ///< As LibTorch does by itself.
    kAsOurs,    ///< With oneDNN where the training in this process has it.
  };

  HandWrittenLoop(const std::string& yaml, Data data, Optimizer optimizer,
                  Convolutions convolutions = Convolutions::kByOneDnn);
  ~HandWrittenLoop();

  /// Trains on, and returns the seconds that `steps` steps took.
  double time_steps(int64_t steps);

 private:
  Batch next_batch();
  void count_update();
  void step(const Batch& batch);

  std::shared_ptr<Network> network_;
  std::unique_ptr<Dataset> dataset_;
  c10::Device device_;
  int64_t batch_size_;
  Convolutions convolutions_;
  std::vector<int64_t> order_;
  size_t position_ = 0;
  std::vector<Batch> prepared_;
  std::vector<at::Tensor> parameters_, exp_avgs_, exp_avg_sqs_, counts_;
  std::unique_ptr<torch::optim::Adam> adam_;
  bool is_sgd_;
  bool is_first_ = true;
};

}  // namespace stepop::bench
