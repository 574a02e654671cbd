#include "runtime/optim/non_finite.h"

#include <fmt/format.h>

#include <cmath>

namespace stepop {
namespace {

std::string finding_text(const std::string& subject, const std::optional<double>& value,
                         int64_t global_step) {
  const char* number = "nan or inf";
  if (value) number = std::isnan(*value) ? "nan" : *value > 0 ? "inf" : "-inf";
  return fmt::format("{} in {} in step {}", number, subject, global_step + 1);
}

}  // namespace

OnNan read_on_nan(const Config& config) {
  const std::string text = config.get("on_nan", "stop");
  if (text == "stop") return OnNan::kStop;
  if (text == "skip") return OnNan::kSkip;
  if (text == "ignore") return OnNan::kIgnore;
  throw config.error("on_nan", fmt::format("expected stop, skip or ignore, found \"{}\"", text));
}

NonFinite::NonFinite(std::string update, std::string subject, std::optional<double> value,
                     int64_t global_step)
    : Error(fmt::format("{}: {}: the update was not made. A smaller lr, a warmup or clip_norm may "
                        "prevent it; on_nan: skip leaves such updates out",
                        update, finding_text(subject, value, global_step))),
      update_(std::move(update)),
      subject_(std::move(subject)),
      value_(value),
      global_step_(global_step) {}

std::string NonFinite::finding() const { return finding_text(subject_, value_, global_step_); }

}  // namespace stepop
