// Metrics of classes: TopK, F1, MeanIoU, AUROC.
#include <ATen/TensorOperators.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "iterators/metrics/metric.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A batch of predictions and classes, a row for each target.
struct ClassBatch {
  at::Tensor scores;     ///< [N, C]; undefined where the predictions are classes.
  at::Tensor predicted;  ///< int64 [N], where the predictions are classes.
  at::Tensor target;     ///< int64 [N], 0 where it is left out.
  at::Tensor kept;       ///< bool [N], false for the target -100.
  int64_t classes;
};

bool is_integer(const at::Tensor& tensor) {
  return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
}

/// On the CPU only: to read values of another device would wait for it.
void check_classes(const char* what, const at::Tensor& values, int64_t classes) {
  if (!values.is_cpu() || values.numel() == 0) return;
  const auto [low, high] = at::aminmax(values);
  const auto smallest = low.item<int64_t>();
  const auto largest = high.item<int64_t>();
  if (smallest >= 0 && largest < classes) return;
  throw Error(fmt::format("the {} has the class {}; there are {} classes, 0 to {}; -100 leaves out",
                          what, smallest < 0 ? smallest : largest, classes, classes - 1));
}

/// In place of a number of classes, where the predictions are classes: as many as occur.
constexpr int64_t kThoseThatOccur = -1;

/// Takes logits [B, C, ...], or with `classes` also predicted classes [B, ...], and targets
/// [B, ...]. Throws Error for other shapes, and on the CPU for a class that does not exist.
ClassBatch class_batch(const at::Tensor& prediction, const at::Tensor& target,
                       int64_t classes = 0) {
  const bool are_classes = classes != 0 && is_integer(prediction);
  std::vector<int64_t> expected = prediction.sizes().vec();
  if (!are_classes && expected.size() > 1) expected.erase(expected.begin() + 1);
  const bool fits = are_classes || (prediction.dim() > 1 && prediction.is_floating_point());
  if (!fits || !is_integer(target) || target.sizes() != expected) {
    throw Error(fmt::format(
        "the prediction is {} and the target {}; expected logits [B, C, ...]{} and classes "
        "[B, ...]",
        describe_tensor(prediction), describe_tensor(target),
        classes != 0 ? ", or predicted classes [B, ...]," : ""));
  }
  ClassBatch batch;
  batch.classes = are_classes ? classes : prediction.size(1);
  const at::Tensor flat = target.flatten().to(at::kLong);
  batch.kept = flat.ne(-100);
  batch.target = at::where(batch.kept, flat, 0);
  if (are_classes) batch.predicted = prediction.flatten().to(at::kLong);
  if (batch.classes == kThoseThatOccur) {
    batch.classes =
        flat.numel() == 0
            ? 1
            : at::maximum(batch.predicted.max(), batch.target.max()).item<int64_t>() + 1;
  }
  check_classes("target", batch.target, batch.classes);
  if (are_classes) {
    check_classes("prediction", batch.predicted, batch.classes);
  } else {
    batch.scores = prediction.movedim(1, -1).reshape({-1, batch.classes});
  }
  return batch;
}

/// The values [C] of the classes as scalars of their own: `0`, `1`, ....
Scalars scalars_by_class(const at::Tensor& values) {
  Scalars scalars;
  for (int64_t i = 0; i < values.size(0); ++i) scalars.set(std::to_string(i), values[i]);
  return scalars;
}

class TopK : public Metric {
 public:
  struct Params {
    int64_t k = 5;

    void declare(Parameters& p) { p.add("k", k, "1: the accuracy", at_least(1)); }
  };

  explicit TopK(const Params& params) : k_(params.k) {}

  void update(const at::Tensor& prediction, const at::Tensor& target) override {
    const ClassBatch batch = class_batch(prediction, target);
    if (k_ > batch.classes) {
      throw Error(fmt::format("k is {}, and there are {} classes", k_, batch.classes));
    }
    const at::Tensor truth = batch.target.unsqueeze(1);
    const at::Tensor own = batch.scores.gather(1, truth);
    const at::Tensor numbers = at::arange(batch.classes, truth.options());
    const at::Tensor first = batch.scores.eq(own).logical_and(numbers.lt(truth));
    const at::Tensor is_right = batch.scores.gt(own).logical_or(first).sum(1).lt(k_);
    const at::Tensor is_nan = std::get<0>(batch.scores.max(1)).isnan();
    const at::Tensor right = is_right.to(at::kDouble).masked_fill_(is_nan, kNan);
    add("right", at::where(batch.kept, right, 0).sum());
    add("count", batch.kept.sum());
  }

  Scalars compute() const override { return {{"", sum("right") / sum("count")}}; }

 private:
  int64_t k_;
};

/// Counts for each class where it is right, predicted and true. A NaN among the scores makes the
/// counts of that example's classes NaN.
class ClassCounts : public Metric {
 public:
  /// The metric from the right predictions, and from all predictions and targets together.
  using Value = at::Tensor(const at::Tensor& right, const at::Tensor& total);

  struct Counted {
    std::string average = "macro";
    std::optional<int64_t> classes;

    void declare(Parameters& p, const std::vector<std::string>& averages,
                 std::string_view about_average) {
      p.add("average", average, about_average, one_of(averages));
      p.add("classes", classes,
            "how many there are, where the predictions are classes; none: those that occur",
            at_least(1));
    }
  };

  ClassCounts(const Counted& params, Value* value)
      : average_(params.average),
        value_(value),
        classes_(params.classes.value_or(kThoseThatOccur)) {}

  void update(const at::Tensor& prediction, const at::Tensor& target) override {
    ClassBatch batch = class_batch(prediction, target, classes_);
    if (!batch.scores.defined() && classes_ == kThoseThatOccur) {
      batch.classes = std::max(batch.classes, counted_classes());
      count_classes(batch.classes);
    }
    at::Tensor predicted = batch.predicted;
    at::Tensor weight = batch.kept.to(at::kDouble);
    if (!predicted.defined()) {
      const auto [largest, place] = batch.scores.max(1);
      predicted = place;
      weight.masked_fill_(largest.isnan().logical_and(batch.kept), kNan);
    }
    const at::Tensor right = weight * predicted.eq(batch.target);
    add("counts", at::zeros({3, batch.classes}, weight.options())
                      .scatter_add_(1, at::stack({predicted, predicted, batch.target}),
                                    at::stack({right, weight, weight})));
  }

  /// Processes may have met other classes.
  void align(const std::function<void(const at::Tensor&)>& maximum) override {
    if (classes_ != kThoseThatOccur) return;
    const at::Tensor most = at::full({1}, counted_classes(), at::kLong);
    maximum(most);
    count_classes(most.item<int64_t>());
  }

  Scalars compute() const override {
    at::Tensor right = sum("counts")[0];
    at::Tensor total = sum("counts")[1] + sum("counts")[2];
    if (average_ == "micro") return {{"", value_(right.sum(), total.sum())}};
    const at::Tensor values = at::where(total.eq(0), 0, value_(right, total));
    if (average_ == "none") return scalars_by_class(values);
    return {{"", values.sum() / total.ne(0).sum()}};
  }

 private:
  int64_t counted_classes() {
    const auto counts = sums().find("counts");
    return counts == sums().end() ? 0 : counts->second.size(1);
  }

  /// Makes room for so many classes in the counts, where there are any.
  void count_classes(int64_t classes) {
    const auto counts = sums().find("counts");
    if (counts == sums().end() || counts->second.size(1) >= classes) return;
    counts->second = at::constant_pad_nd(counts->second, {0, classes - counts->second.size(1)});
  }

  std::string average_;
  Value* value_;
  int64_t classes_;
};

class F1 : public ClassCounts {
 public:
  struct Params : Counted {
    void declare(Parameters& p) {
      Counted::declare(p, {"macro", "micro", "none"},
                       "over classes; micro: of all together; none: each");
    }
  };

  explicit F1(const Params& params)
      : ClassCounts(params, [](const at::Tensor& right, const at::Tensor& total) -> at::Tensor {
          return 2 * right / total;
        }) {}
};

class MeanIoU : public ClassCounts {
 public:
  struct Params : Counted {
    void declare(Parameters& p) {
      Counted::declare(p, {"macro", "none"}, "over classes; none: each");
    }
  };

  explicit MeanIoU(const Params& params)
      : ClassCounts(params, [](const at::Tensor& right, const at::Tensor& total) -> at::Tensor {
          return right / (total - right);
        }) {}
};

/// Counts, for each class against the rest, the scores between two thresholds.
class AUROC : public Metric {
 public:
  struct Params {
    std::string from = "logits";
    int64_t thresholds = 200;
    std::string average = "macro";

    void declare(Parameters& p) {
      p.add("from", from, "or probabilities", one_of({"logits", "probabilities"}));
      p.add("thresholds", thresholds, "evenly in [0, 1]", at_least(2));
      p.add("average", average, "over classes; none: each", one_of({"macro", "none"}));
    }
  };

  explicit AUROC(const Params& params)
      : thresholds_(params.thresholds), average_(params.average), from_(params.from) {}

  void update(const at::Tensor& prediction, const at::Tensor& target) override {
    const bool is_binary = prediction.dim() == target.dim();
    const bool is_double = prediction.scalar_type() == at::kDouble;
    at::Tensor scores = is_double ? prediction : prediction.to(at::kFloat);
    if (from_ == "probabilities") {
      add("outside", at::logical_or(scores.lt(0), scores.gt(1)).sum());
    }
    if (from_ == "logits") scores = is_binary ? scores.sigmoid() : scores.softmax(1);
    if (is_binary) scores = at::stack({1 - scores, scores}, 1);
    const ClassBatch batch = class_batch(scores, target);
    // One score stands for two classes, and only the second is a class against the rest.
    const int64_t first = is_binary ? 1 : 0;
    const int64_t classes = batch.classes - first;
    scores = batch.scores.narrow(1, first, classes).contiguous();  // [N, classes]
    const at::Tensor edges = at::linspace(0, 1, thresholds_, scores.options().dtype(at::kFloat));
    const at::Tensor passed = at::searchsorted(edges.to(scores.scalar_type()), scores,
                                               /*out_int32=*/false, /*right=*/true);
    const at::Tensor numbers = at::arange(classes, passed.options());
    const at::Tensor is_true = batch.target.unsqueeze(1).eq(numbers + first);
    const int64_t bins = thresholds_ + 1;
    const at::Tensor place = (numbers * 2 + is_true.to(at::kLong)) * bins + passed;
    const at::Tensor kept = batch.kept.unsqueeze(1).expand_as(place);
    const at::Tensor weight =
        kept.to(at::kDouble).masked_fill(scores.isnan().logical_and(kept), kNan);
    add("counts", at::zeros({classes * 2 * bins}, weight.options())
                      .scatter_add_(0, place.flatten(), weight.flatten())
                      .view({classes, 2, bins}));
  }

  Scalars compute() const override {
    if (from_ == "probabilities" && sum("outside").item<int64_t>() > 0) {
      throw Error(
          fmt::format("AUROC: {} of the predictions are not in [0, 1], as probabilities are; "
                      "from: logits takes what a sigmoid or a softmax makes probabilities of",
                      sum("outside").item<int64_t>()));
    }
    const at::Tensor& counts = sum("counts");
    const at::Tensor total = counts.sum(2, /*keepdim=*/true);
    // The shares of the rest, and of the class, that reach each threshold, from the lowest on.
    const at::Tensor reach = counts.flip(2).cumsum(2).flip(2).narrow(2, 1, thresholds_);
    const at::Tensor rates = at::where(total.eq(0), 0, reach / total);
    const at::Tensor rest = rates.select(1, 0);
    const at::Tensor hits = rates.select(1, 1);
    const int64_t steps = thresholds_ - 1;
    const at::Tensor widths = rest.narrow(1, 0, steps) - rest.narrow(1, 1, steps);
    const at::Tensor heights = (hits.narrow(1, 0, steps) + hits.narrow(1, 1, steps)) / 2;
    const at::Tensor areas = (widths * heights).sum(1);
    if (average_ == "none") return scalars_by_class(areas);
    return {{"", at::where(total.sum().eq(0), kNan, areas.mean())}};
  }

 private:
  int64_t thresholds_;
  std::string average_;
  std::string from_;
};

STEPOP_REGISTER_METRIC(TopK, {"The share of targets that are among the k largest logits."});
STEPOP_REGISTER_METRIC(F1, {"The F1 score of logits or classes."});
STEPOP_REGISTER_METRIC(MeanIoU,
                       {"The mean intersection over union of the classes of examples or pixels."});
STEPOP_REGISTER_METRIC(
    AUROC, {"The area under the ROC curve: of one score, or of each class against the rest."});

}  // namespace
}  // namespace stepop
