#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/tools/tune/trainee.h"
#include "runtime/tools/tune/tune_steps.h"
#include "runtime/train/distributed/world.h"

namespace stepop {

/// One step of a learning-rate range test (Smith, Cyclical Learning Rates, 2017).
struct RatePoint {
  double rate = 0;
  double loss = 0;
};

struct RateSuggestion {
  std::optional<double> rate = {};  ///< None when the losses allow no suggestion.
  std::string reason = {};          ///< In words, with the rates.
};

/// The losses without their noise: an exponential moving average, with Adam's correction of its
/// beginning.
std::vector<double> smoothed(const std::vector<RatePoint>& points);

/// The rate at which the smoothed loss falls fastest over the logarithm of the rate, but at most a
/// tenth of the rate with the lowest loss; none when the loss never falls by more than its noise.
RateSuggestion suggest_rate(const std::vector<RatePoint>& points);

/// The same training with a rate that grows evenly on a logarithmic scale over `steps` steps, in
/// each optimizer. Throws UsageError for a config without `optimizer` and `optimizers`.
Value config_of_rates(Value config, double low, double high, int64_t steps);

/// The other side of `test_rates`: answers with step and loss after each step. Ends the process
/// after the last step, or when the loss is NaN, infinite or, smoothed, four times its lowest.
[[noreturn]] void run_rate_test(const Config& config, bool allow_unknown, World& world,
                                const std::string& folder, const std::string& weights);

/// Trains a config with growing rates in its own process. Throws CandidateFailed.
std::vector<RatePoint> test_rates(const TuneOptions& options, const TraineeOptions& trainees);

/// Losses over rates, with the smoothed line and the suggestion, as the bytes of a PNG file. Throws
/// Error when there are no points.
std::string rate_picture(const std::vector<RatePoint>& points, const RateSuggestion& suggestion);

}  // namespace stepop
