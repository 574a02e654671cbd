#include "iterators/diffusion/options.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "iterators/diffusion/beta_schedule.h"
#include "runtime/core/base/error.h"

namespace stepop::diffusion {
namespace {

template <class Enum, size_t N>
using Names = std::array<std::pair<std::string_view, Enum>, N>;

constexpr Names<MeanType, 3> kMeanTypes = {{{"epsilon", MeanType::kEpsilon},
                                            {"previous_x", MeanType::kPreviousX},
                                            {"start_x", MeanType::kStartX}}};
constexpr Names<VarianceType, 4> kVarianceTypes = {
    {{"fixed_small", VarianceType::kFixedSmall},
     {"fixed_large", VarianceType::kFixedLarge},
     {"learned", VarianceType::kLearned},
     {"learned_range", VarianceType::kLearnedRange}}};
constexpr Names<LossType, 4> kLossTypes = {{{"mse", LossType::kMse},
                                            {"rescaled_mse", LossType::kRescaledMse},
                                            {"kl", LossType::kKl},
                                            {"rescaled_kl", LossType::kRescaledKl}}};

template <class Enum, size_t N>
Enum read(const Config& params, const char* key, const Names<Enum, N>& names) {
  const auto name = params.get<std::string>(key);
  std::string known;
  for (size_t i = 0; i < N; ++i) {
    if (names[i].first == name) return names[i].second;
    known += fmt::format("{}{}", i == 0 ? "" : i + 1 == N ? " or " : ", ", names[i].first);
  }
  throw params.error(key, fmt::format("expected {}, found \"{}\"", known, name));
}

/// Runs `call`; an Error becomes a UsageError with the place of `key`.
template <class Call>
auto at_key(const Config& params, std::string_view key, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    throw params.error(key, error.what());
  }
}

}  // namespace

DiffusionOptions read_options(const Config& params) {
  constexpr int64_t kMost = 1'000'000;
  DiffusionOptions options;
  const Config schedule = params.at("beta_schedule");
  const auto name = schedule.get<std::string>("schedule_name");
  const int64_t timesteps = schedule.get_at_least("num_diffusion_timesteps", 2);
  if (timesteps > kMost) {
    throw schedule.error("num_diffusion_timesteps",
                         fmt::format("expected {} at most, found {}", kMost, timesteps));
  }
  const bool is_known = name == "linear" || name == "cosine";
  options.betas = at_key(schedule, is_known ? "num_diffusion_timesteps" : "schedule_name",
                         [&] { return beta_schedule(name, timesteps); });
  const Config args = params.at("diffusion_args");
  options.mean_type = read(args, "model_mean_type", kMeanTypes);
  options.variance_type = read(args, "model_var_type", kVarianceTypes);
  options.loss_type = args.has("loss_type") ? read(args, "loss_type", kLossTypes) : LossType::kMse;
  options.rescale_timesteps = args.get("rescale_timesteps", false);
  if (args.get("conditioning_free", false)) {
    throw args.error("conditioning_free",
                     "needs a network that can be called without what it is conditioned on, and "
                     "none is there: leave it out");
  }
  args.has("conditioning_free_k");  // no effect without conditioning_free
  args.has("ramp_conditioning_free");
  return options;
}

void read_spacing(const Config& params, bool use_ddim, DiffusionOptions& options) {
  constexpr const char* kKey = "respaced_timestep_spacing";
  if (!params.has(kKey)) return;
  std::string spacing = params.peek(kKey)->is_text() ? params.get<std::string>(kKey)
                                                     : fmt::format("{}", params.get<int64_t>(kKey));
  const bool is_number = spacing.find_first_not_of("0123456789") == std::string::npos;
  if (use_ddim && is_number) spacing = "ddim" + spacing;
  options.taken = at_key(params, kKey, [&] {
    auto taken = spaced_timesteps(static_cast<int64_t>(options.betas.size()), spacing);
    if (taken.size() < 2) throw Error("expected 2 timesteps or more, found 1");
    return taken;
  });
}

}  // namespace stepop::diffusion
