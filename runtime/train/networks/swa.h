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
/// The statistics of batch normalization belong to the weights of the training, not to their
/// average. So they are measured anew for it, as torch.optim.swa_utils.update_bn does; who runs the
/// network for that is `measure_batch_norm` (loop/batch_norm.h). They are kept with the averages.
///
/// Config: `swa: {from: 5e, every: 1e, until: 20e, networks: [model], batch_norm_batches: 0}`.
class Swa : public Averages {
 public:
  /// `config` is the part `swa`. With `must_be_restored`, a checkpoint that was saved without `swa`
  /// is refused.
  Swa(const Config& config, bool must_be_restored);

  void add(const std::string& name, std::shared_ptr<torch::nn::Module> network) override;

  /// Takes a snapshot.
  void update();

  /// Whether there are layers of batch normalization whose statistics are not those of the average.
  bool is_stale() const { return !layers_.empty() && measured_ != count_; }
  /// Over how many batches they are measured at most; 0 for a whole epoch.
  int64_t most_batches() const { return most_batches_; }

  /// While it lives, the layers of batch normalization collect statistics from nothing on, each
  /// batch with the same weight. The network's own come back with its end.
  class Measurement {
   public:
    explicit Measurement(Swa& swa);
    ~Measurement();
    Measurement(const Measurement&) = delete;
    Measurement& operator=(const Measurement&) = delete;

    /// What was collected becomes that of the average. A layer that saw no batch keeps the
    /// network's own.
    void keep();

   private:
    Swa& swa_;
    std::vector<at::Tensor> own_;  ///< By place in `buffers_`, as
    std::vector<at::Tensor> collected_;
    std::vector<std::optional<double>> momenta_;  ///< By layer.
  };

  /// How many snapshots there were, and how many when the statistics were measured.
  State counts() const;
  /// To be restored before the averages. Throws Error for what is no such state.
  void load_counts(const State& state);
  void load_state(const std::string& name, const State& state) {
    Averages::load_state(name, state, /*has_statistics=*/measured_ > 0);
  }

 private:
  int64_t most_batches_;
  bool must_be_restored_;
  int64_t count_ = 0;
  int64_t measured_ = 0;  ///< `count_` when the statistics were measured; 0: never.
  std::vector<std::shared_ptr<torch::nn::Module>> layers_;  ///< Of batch normalization.
};

}  // namespace stepop
