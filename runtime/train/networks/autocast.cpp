#include "runtime/train/networks/autocast.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>

#include "runtime/core/components/foreign_names.h"
#include "runtime/core/config/config.h"
#include "runtime/train/keys/own_keys.h"

namespace stepop {

Precision read_precision(const Config& config) {
  const Value* value = config.has("precision") ? config.peek("precision") : nullptr;
  if (value == nullptr || value->is_text()) {
    // Another text is answered below, with what other programs call these.
    const auto name = value == nullptr ? own_key<std::string>(config, "precision")
                                       : config.get<std::string>("precision");
    if (name != "float16" && config.has("loss_scale")) {
      throw config.error("loss_scale", "losses are scaled with precision: float16 alone");
    }
    if (name == "float32") return Precision::kFloat32;
    if (name == "bfloat16") return Precision::kBfloat16;
    if (name == "float16") return Precision::kFloat16;
  }
  throw config.error("precision",
                     fmt::format("expected float32, bfloat16 or float16, found {}{}",
                                 value->describe(), foreign_value_hint("precision", *value)));
}

AutocastGuard::AutocastGuard(Precision precision, const c10::Device& device)
    : device_(device.type()),
      was_on_(at::autocast::is_autocast_enabled(device_)),
      changes_(was_on_ || precision != Precision::kFloat32) {
  if (!changes_) return;
  was_cached_ = at::autocast::is_autocast_cache_enabled();
  type_before_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, precision != Precision::kFloat32);
  if (precision == Precision::kFloat32) return;
  at::autocast::set_autocast_dtype(device_,
                                   precision == Precision::kBfloat16 ? at::kBFloat16 : at::kHalf);
  at::autocast::set_autocast_cache_enabled(false);
}

AutocastGuard::~AutocastGuard() {
  if (!changes_) return;
  at::autocast::set_autocast_enabled(device_, was_on_);
  at::autocast::set_autocast_dtype(device_, type_before_);
  at::autocast::set_autocast_cache_enabled(was_cached_);
}

}  // namespace stepop
