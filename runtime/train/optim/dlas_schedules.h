#pragma once

#include <array>
#include <string_view>

namespace stepop {

inline constexpr const char* kDlasMultiStep = "MultiStepLR";
inline constexpr const char* kDlasProgressive = "ProgressiveMultiStepLR";
inline constexpr const char* kDlasCosine = "CosineAnnealingLR_Restart";

/// A key of `train` in configs of DL-Art-School and of the ExtensibleTrainer, and the schedules of
/// `default_lr_scheme` that read it.
struct DlasScheduleKey {
  std::string_view name;
  std::array<std::string_view, 2> schedules;  ///< Empty where there is no second one.
  std::string_view here_also = {};            ///< A schedule that reads it here, but not there.

  bool is_read_there(std::string_view schedule) const {
    return !schedule.empty() && (schedule == schedules[0] || schedule == schedules[1]);
  }
  bool is_read_here(std::string_view schedule) const {
    return is_read_there(schedule) || (!schedule.empty() && schedule == here_also);
  }
};

inline constexpr std::array<DlasScheduleKey, 10> kDlasScheduleKeys = {
    {{"gen_lr_steps", {kDlasMultiStep, kDlasProgressive}},
     {"lr_gamma", {kDlasMultiStep, kDlasProgressive}},
     {"progressive_starts", {kDlasProgressive}},
     {"restarts", {kDlasMultiStep, kDlasCosine}},
     {"restart_weights", {kDlasMultiStep, kDlasCosine}},
     {"clear_state", {kDlasMultiStep}, kDlasCosine},
     {"warmup_steps", {kDlasMultiStep}},
     {"T_period", {kDlasCosine}},
     {"warmup", {kDlasCosine}},
     {"eta_min", {kDlasCosine}}}};

}  // namespace stepop
