#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/train/iterator/hook.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

/// The steps between two reads of the loss, each of which waits for a GPU.
constexpr size_t kReadEvery = 20;
/// So many spikes in a row are no spikes: the loss has another level, as after unfreezing layers.
constexpr int64_t kNewLevel = 10;
/// A spike that comes back after so many rewinds to one checkpoint does not come from its batches.
constexpr int64_t kRewindsFromOne = 3;
/// The standard deviation of normal numbers whose median absolute deviation is 1.
constexpr double kDeviation = 1.4826;

/// The same for their mean absolute deviation.
constexpr double kDeviationOfMean = 1.2533;
/// Losses that are all 0 have this deviation: rounding alone is no spike.
constexpr double kLeastDeviation = 1e-7;

/// A copy: each launch of a captured step writes into the same tensor.
WeightedMean copy_of(const WeightedMean& loss) {
  at::Tensor value = loss.value().detach().reshape({}).clone();
  if (loss.known_weight()) return {std::move(value), *loss.known_weight()};
  const at::Tensor weight = loss.weight();
  return weight.defined() ? WeightedMean(std::move(value), weight.clone())
                          : WeightedMean(std::move(value));
}

/// Room for so many losses.
at::Tensor none_yet(int64_t size) {
  return at::full({size}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Sees a loss that jumps out of those of the steps before: by their median and their median
/// absolute deviation, which a single jump does not move.
class LossSpike : public Hook {
 public:
  struct Params {
    std::optional<std::string> loss;
    int64_t window = 200;
    double deviations = 8;
    std::string then = "warn";
    int64_t most_rewinds = 10;

    void declare(Parameters& p) {
      p.add("loss", loss,
            "an update, such as generator_optimizer, or a number that a train op returns: loss, or "
            "train_op/loss; none: the first update");
      p.add("deviations", deviations,
            "so far above their median a loss is a spike, in median absolute deviations times "
            "1.4826 (standard deviations, where losses are normal)",
            above(0));
      p.add("then", then,
            "warn, checkpoint (and warn), rewind (to the last checkpoint, and leave out the "
            "batches since) or stop",
            one_of({"warn", "checkpoint", "rewind", "stop"}));
      p.add("most_rewinds", most_rewinds, "a spike after so many ends the training", at_least(0));
      p.add("window", window, "so many steps before are compared with", at_least(3));
    }
  };

  LossSpike(const Params& given, const Config& params, const Context& context)
      : context_(context),
        params_(params),
        loss_(given.loss.value_or("")),
        deviations_(given.deviations),
        then_(given.then),
        most_rewinds_(given.most_rewinds),
        window_(none_yet(given.window)),
        row_(none_yet(kNewLevel)) {
    if (then_ == "rewind" && context.world_size > 1) {
      throw params.error("then", "rewind: only a training in one process goes back");
    }
    context.track(
        "losses",
        [this] {
          read();  // what waits is in no checkpoint
          note_rewinds();
          return State{{"window", window_},
                       {"count", at::scalar_tensor(count_, at::kLong)},
                       {"row", row_},
                       {"rewinds", at::scalar_tensor(rewinds_before_, at::kLong)},
                       {"rewinds_step", at::scalar_tensor(rewinds_step_, at::kLong)}};
        },
        [this](const State& state) { load(state); });
  }

  ~LossSpike() override {
    for (const auto& [name, update] : context_.updates) update->watch_losses(this, {});
  }

  /// What train ops return is unknown before they ran; a name near an update's is a misspelt one.
  void initialize() override {
    if (loss_.empty() || context_.updates.contains(loss_)) return;
    constexpr size_t kShortest = 4;  // `g` and `d` look alike, too
    std::vector<std::string> names;
    for (const auto& [name, update] : context_.updates) names.push_back(name);
    const auto near = nearest_names(loss_, names, 1);
    if (near.empty() || loss_.size() < kShortest) return;
    throw params_.error("loss", fmt::format("no update is called \"{}\"; did you mean \"{}\"?",
                                            loss_, near.front()));
  }

  void before_training() override {
    for (const auto& [name, update] : context_.updates) {
      if (!loss_.empty() && loss_ != name) continue;
      update->watch_losses(this, [this](const WeightedMean& loss) {
        of_update_.push_back(copy_of(loss));
        return true;
      });
      return;
    }
  }

  void after_batch(const Batch& batch, const OrderedMap<Scalars>& results) override {
    std::optional<Scalar> found;
    if (!of_update_.empty()) {  // several when the batch was divided
      found = Scalar(of_update_.front());
      for (size_t i = 1; i < of_update_.size(); ++i) {
        found = mean_of("the loss", *found, static_cast<double>(i), of_update_[i], 1);
      }
      of_update_.clear();
    }
    for (const auto& [op, scalars] : results) {
      for (const auto& [name, scalar] : scalars) {
        const bool is_it = loss_ == name || loss_ == op + "/" + name;
        if (is_it && !found) found = scalar;
      }
    }
    if (!found) return say_what_there_is(results);
    std::vector<int64_t> examples = batch.indices();
    waiting_.push_back({*found, context_.position.global_step + 1, std::move(examples)});
    if (context_.device.is_cpu() || waiting_.size() >= kReadEvery) read();
  }

  void after_training() override { read(); }

 private:
  struct Waiting {
    Scalar loss;
    int64_t step;
    std::vector<int64_t> examples;
  };

  /// Another `window` than that of the checkpoint begins anew.
  void load(const State& state) {
    const auto window = state.find("window");
    const auto count = state.find("count");
    if (window == state.end() || count == state.end()) return;
    if (window->second.sizes() != window_.sizes()) return;
    window_.copy_(window->second);
    count_ = count->second.item<int64_t>();
    // Checkpoints of 0.1.0 lack these.
    if (const auto row = state.find("row"); row != state.end()) {
      row_.copy_(row->second);
      in_row_ = kNewLevel - row_.isnan().sum().item<int64_t>();
    }
    const auto rewinds = state.find("rewinds");
    const auto step = state.find("rewinds_step");
    if (rewinds == state.end() || step == state.end()) return;
    rewinds_before_ = rewinds->second.item<int64_t>();
    rewinds_step_ = step->second.item<int64_t>();
  }

  /// Counts rewinds from the checkpoint of this step on, unless it lies within a row of spikes. A
  /// start at that step, which saves and restores what is tracked around its checks, changes
  /// nothing.
  void note_rewinds() {
    if (context_.position.global_step <= rewinds_step_ || in_row_ > 0) return;
    rewinds_step_ = context_.position.global_step;
    rewinds_before_ = context_.position.rewinds;
  }

  /// Waits for a device once.
  void read() {
    Logs losses;
    for (const auto& each : waiting_) {
      losses.scalars.set(fmt::format("of step {}", each.step), each.loss);
    }
    const OrderedMap<double> numbers = read_scalars({{"the loss", losses}});
    for (const auto& [loss, step, examples] : std::exchange(waiting_, {})) {
      const double* number = numbers.find(fmt::format("the loss/of step {}", step));
      if (number != nullptr) look_at(*number, step, examples);  // of a batch in which labels count
    }
  }

  void look_at(double loss, int64_t step, const std::vector<int64_t>& examples) {
    if (!std::isfinite(loss)) return;  // the matter of on_nan
    auto* losses = window_.mutable_data_ptr<double>();
    const int64_t size = window_.numel();
    if (count_ >= size) {
      std::vector<double> values(losses, losses + size);
      const double middle = median(values);
      double sum = 0;
      for (double& value : values) sum += value = std::abs(value - middle);
      double deviation = kDeviation * median(values);
      // When most losses are equal, as a hinge loss that is mostly 0, the others still count.
      if (deviation == 0) deviation = kDeviationOfMean * sum / static_cast<double>(size);
      // Losses that hardly differ have no deviation worth a warning.
      deviation = std::max(deviation, 1e-3 * std::abs(middle));
      if (deviation == 0) deviation = kLeastDeviation;
      if (loss > middle + deviations_ * deviation) {
        row_.mutable_data_ptr<double>()[in_row_++] = loss;
        answer(loss, step, middle, deviation, examples);
        if (in_row_ == kNewLevel) take_new_level(step);
        return;
      }
    }
    if (in_row_ != 0) end_row();
    losses[count_++ % size] = loss;
  }

  void end_row() {
    row_.fill_(std::numeric_limits<double>::quiet_NaN());
    in_row_ = 0;
  }

  /// The losses of the row are the first ones of a new window.
  void take_new_level(int64_t step) {
    window_.fill_(std::numeric_limits<double>::quiet_NaN());
    count_ = 0;
    const int64_t kept = std::min(in_row_, window_.numel());
    window_.narrow(0, 0, kept).copy_(row_.narrow(0, kNewLevel - kept, kept));
    count_ = kept;
    context_.log.warn(
        fmt::format("step {}: the last {} losses are all above those before: later ones are "
                    "compared with these",
                    with_thousands(step), in_row_));
    end_row();
  }

  void answer(double loss, int64_t step, double middle, double deviation,
              const std::vector<int64_t>& examples) {
    std::vector<std::string> names;
    for (const int64_t index : examples) names.push_back(fmt::format("{}", index));
    const std::string text =
        fmt::format("the loss is {}, {} deviations above the median {} of the {} steps before",
                    short_number(loss), short_number((loss - middle) / deviation),
                    short_number(middle), window_.numel());
    context_.log.warn(fmt::format("step {}: {}; its batch has the training examples {}",
                                  with_thousands(step), text, list_text(names)));
    if (then_ == "checkpoint") request_checkpoint();
    const int64_t rewinds = context_.position.rewinds;
    if (then_ == "rewind" && rewinds - rewinds_before_ >= kRewindsFromOne) {
      if (in_row_ == 1) {
        context_.log.warn(
            fmt::format("step {}: {} to the same checkpoint left other batches out each time, and "
                        "the loss jumps again: the training continues",
                        with_thousands(step), counted(rewinds - rewinds_before_, "rewind")));
      }
      return;
    }
    if (then_ == "rewind" && rewinds < most_rewinds_) {
      request_rewind(fmt::format("step {}: {}", with_thousands(step), text));
    }
    if (then_ == "stop") request_stop(text);
    if (then_ == "rewind" && rewinds >= most_rewinds_) {
      request_stop(fmt::format("{}, after {}", text, counted(rewinds, "rewind")));
    }
  }

  void say_what_there_is(const OrderedMap<Scalars>& results) {
    // In a step that trains something else there may be none.
    if (loss_.empty() || !context_.log.is_first("LossSpike " + loss_)) return;
    std::vector<std::string> names;
    for (const auto& [name, update] : context_.updates) names.push_back(name);
    for (const auto& [op, scalars] : results) {
      for (const auto& [name, scalar] : scalars) names.push_back(op + "/" + name);
    }
    context_.log.warn(
        fmt::format("LossSpike sees no \"{}\"; there are the losses of updates, and numbers that "
                    "train ops return: {}",
                    loss_, list_text(names)));
  }

  const Context& context_;
  Config params_;
  std::string loss_;
  double deviations_;
  std::string then_;
  int64_t most_rewinds_;
  at::Tensor window_;  ///< float64: losses that were no spikes; a ring.
  int64_t count_ = 0;  ///< Of the losses in it so far.
  at::Tensor row_;     ///< float64: the spikes since the last loss that was none; then NaN.
  int64_t in_row_ = 0;
  int64_t rewinds_before_ = 0;  ///< Of the training, when the last checkpoint was saved.
  int64_t rewinds_step_ = -1;   ///< The step of that checkpoint.
  std::vector<Waiting> waiting_;
  std::vector<WeightedMean> of_update_;  ///< The losses of the batch at hand.
};

STEPOP_REGISTER_HOOK(LossSpike, {"Finds losses that jump out of those of the steps before."});

}  // namespace
}  // namespace stepop
