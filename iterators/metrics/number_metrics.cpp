// Metrics of tokens and numbers: Perplexity, R2.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>

#include <functional>
#include <limits>

#include "iterators/metrics/metric.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {
namespace {

class Perplexity : public Metric {
 public:
  struct Params {
    int64_t dim = -1;

    void declare(Parameters& p) { p.add("dim", dim, "of the vocabulary: [B, T, V]; 1: [B, V, T]"); }
  };

  explicit Perplexity(const Params& params) : dim_(params.dim) {}

  void update(const at::Tensor& prediction, const at::Tensor& target) override {
    const at::Tensor logits = prediction.movedim(dim_, 1);
    const at::Tensor loss =
        at::cross_entropy_loss(logits, target.to(at::kLong), {}, at::Reduction::None);
    add("loss", loss.sum(at::kDouble));
    add("count", target.ne(-100).sum());
  }

  Scalars compute() const override { return {{"", (sum("loss") / sum("count")).exp()}}; }

 private:
  int64_t dim_;
};

/// Sums of distances to a number near the targets, so that large targets do not cancel.
class R2 : public Metric {
 public:
  explicit R2(const Config& /*params*/) {}

  void update(const at::Tensor& prediction, const at::Tensor& target) override {
    if (prediction.sizes() != target.sizes() || prediction.is_complex() || target.is_complex()) {
      throw Error(fmt::format("the prediction is {} and the target {}; expected equal shapes",
                              describe_tensor(prediction), describe_tensor(target)));
    }
    const at::Tensor truth = target.to(at::kDouble);
    if (!sums().contains(kReference) && truth.numel() > 0) add(kReference, truth.flatten()[0]);
    const at::Tensor distance = truth.numel() > 0 ? truth - sum(kReference) : truth;
    add("count", at::scalar_tensor(truth.numel(), truth.options()));
    add("distance", distance.sum());
    add("squares", distance.square().sum());
    add("errors", (truth - prediction.to(at::kDouble)).square().sum());
  }

  void align(const std::function<void(const at::Tensor&)>& maximum) override {
    State& all = sums();
    const auto found = all.find(kReference);
    const bool is_empty = found == all.end();
    const at::Tensor own =
        is_empty ? at::scalar_tensor(-std::numeric_limits<double>::infinity(), at::kDouble)
                 : found->second.cpu();
    const at::Tensor shared = own.clone();
    maximum(shared);
    if (is_empty) return;
    const at::Tensor step = (own - shared).to(found->second.device());
    const at::Tensor distance = sum("distance");
    all["squares"] = sum("squares") + step * (2 * distance + sum("count") * step);
    all["distance"] = distance + sum("count") * step;
    all.erase(found);
  }

  Scalars compute() const override {
    const at::Tensor& errors = sum("errors");
    const at::Tensor spread =
        (sum("squares") - sum("distance").square() / sum("count")).clamp_min(0);
    const at::Tensor constant = errors.eq(0).to(at::kDouble);
    const at::Tensor value = at::where(spread.eq(0), constant, 1 - errors / spread);
    return {{"", at::where(sum("count").lt(2), std::numeric_limits<double>::quiet_NaN(), value)}};
  }

 private:
  static constexpr const char* kReference = "reference";
};

STEPOP_REGISTER_METRIC(Perplexity, {"exp of the mean negative log likelihood of the tokens."});
STEPOP_REGISTER_METRIC(R2, {"The coefficient of determination, over all elements.", {}});

}  // namespace
}  // namespace stepop
