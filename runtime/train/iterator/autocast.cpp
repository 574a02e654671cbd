#include "runtime/train/iterator/autocast.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>

#include "runtime/core/config/config.h"
#include "runtime/core/config/foreign_names.h"

namespace stepop {

Precision read_precision(const Config& config) {
  const Value* value = config.has("precision") ? config.peek("precision") : nullptr;
  if (value == nullptr || value->is_text()) {
    const std::string name = config.get("precision", "float32");
    if (name == "float32") return Precision::kFloat32;
    if (name == "bfloat16") return Precision::kBfloat16;
  }
  const std::string hint = foreign_value_hint("precision", *value);
  throw config.error("precision", fmt::format("expected float32 or bfloat16, found {}{}{}",
                                              value->describe(), hint,
                                              hint.find("bfloat16") != std::string::npos
                                                  ? " It has the range of float32, so no loss has "
                                                    "to be scaled"
                                                  : ""));
}

AutocastGuard::AutocastGuard(Precision precision, const c10::Device& device)
    : is_on_(precision == Precision::kBfloat16), device_(device.type()) {
  if (!is_on_) return;
  was_on_ = at::autocast::is_autocast_enabled(device_);
  was_cached_ = at::autocast::is_autocast_cache_enabled();
  type_before_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_dtype(device_, at::kBFloat16);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_cache_enabled(false);
}

AutocastGuard::~AutocastGuard() {
  if (!is_on_) return;
  at::autocast::set_autocast_enabled(device_, was_on_);
  at::autocast::set_autocast_dtype(device_, type_before_);
  at::autocast::set_autocast_cache_enabled(was_cached_);
}

}  // namespace stepop
