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

/// What a test says.
struct RateSuggestion {
  std::optional<double> rate = {};  ///< None where nothing can be said.
  std::string reason = {};          ///< In words, with the rates that it is about.
};

/// The losses without their noise: a mean whose weights fall exponentially, begun without a bias as
/// in Adam.
std::vector<double> smoothed(const std::vector<RatePoint>& points);

/// The rate at which the smoothed loss falls fastest by the logarithm of the rate, at most a tenth
/// of that at which it is lowest; none where it never falls by more than its noise.
RateSuggestion suggest_rate(const std::vector<RatePoint>& points);

/// The same training with rates that grow evenly on a logarithmic scale, one for each of `steps`
/// steps, in each optimizer of `optimizer` or `optimizers`. Throws UsageError where there is none.
Value config_of_rates(Value config, double low, double high, int64_t steps);

/// The other side of `test_rates`: writes the loss of each step, and ends the process after
/// `steps`, or when the smoothed loss is four times its lowest, or the loss no number.
[[noreturn]] void run_rate_test(const Config& config, World& world, const std::string& folder,
                                const std::string& weights, int answers);

/// Trains a config with rates that grow, in a process of its own. Throws CandidateFailed.
std::vector<RatePoint> test_rates(const TuneOptions& options, const TraineeOptions& trainees);

/// Losses over the rates, with the smoothed line and what is suggested, as the bytes of a PNG file.
std::string rate_picture(const std::vector<RatePoint>& points, const RateSuggestion& suggestion);

}  // namespace stepop
