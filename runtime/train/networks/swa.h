#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/train/networks/averages.h"

namespace stepop {

/// Stochastic weight averaging (Izmailov et al., 2018), as torch.optim.swa_utils.AveragedModel: the
/// equal average of snapshots of the parameters, n of them so far:
///
///   average += (parameter - average) / (n + 1)
///
/// The network's statistics of batch normalization belong to the weights of the training, not to
/// their average. So statistics for the average are measured, as torch.optim.swa_utils.update_bn
/// does; `measure_batch_norm` (loop/batch_norm.h) runs the network for that. They are kept with the
/// averages.
///
/// Config: `swa: {from: 5e, every: 1e, until: 20e, networks: [model], batch_norm_batches: 0}`.
class Swa : public Averages {
 public:
  /// `config` is the part `swa`. With `must_be_restored`, a checkpoint that was saved without `swa`
  /// is an error.
  Swa(const Config& config, bool must_be_restored);

  void add(const std::string& name, std::shared_ptr<torch::nn::Module> network) override;

  /// Takes a snapshot.
  void update();

  /// Whether layers of batch normalization lack statistics for the current average.
  bool is_stale() const { return !layers_.empty() && measured_ != count_; }
  /// Networks whose batch normalization is no layer of LibTorch, such as those of a file of Python:
  /// nothing measures their statistics for the average.
  const std::vector<std::string>& unmeasured() const { return unmeasured_; }
  /// The largest number of batches for a measurement; 0 for a whole epoch.
  int64_t most_batches() const { return most_batches_; }

  /// During its lifetime, the layers of batch normalization collect statistics from zero, each
  /// batch with the same weight. Afterwards they have the network's own statistics again.
  class Measurement {
   public:
    explicit Measurement(Swa& swa);
    ~Measurement();
    Measurement(const Measurement&) = delete;
    Measurement& operator=(const Measurement&) = delete;

    /// Makes the collected statistics those of the average. A layer that saw no batch keeps the
    /// network's own statistics.
    void keep();

   private:
    Swa& swa_;
    std::vector<at::Tensor> own_;                 ///< By position in `buffers_`;
    std::vector<at::Tensor> collected_;           ///< the same.
    std::vector<std::optional<double>> momenta_;  ///< By layer.
  };

  /// The number of snapshots, and the number at the time when the statistics were measured.
  State counts() const;
  /// Called before the averages are restored. Throws Error for a state that does not fit.
  void load_counts(const State& state);
  void load_state(const std::string& name, const State& state) {
    Averages::load_state(name, state, /*has_statistics=*/measured_ > 0);
  }

 private:
  int64_t most_batches_;
  bool must_be_restored_;
  int64_t count_ = 0;
  int64_t measured_ = 0;  ///< `count_` at the time of the measurement; 0: never measured.
  std::vector<std::string> unmeasured_;
  std::vector<std::shared_ptr<torch::nn::Module>> layers_;  ///< The layers of batch normalization.
};

}  // namespace stepop
