#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/components/parameters.h"

namespace stepop::extensible {

/// Declares `size: 64` or `size: [64, 96]`, height and width in pixels; `size` is empty without it.
inline void add_image_size(Parameters& p, std::vector<int64_t>& size, std::string about) {
  const Config* config =
      p.describe({"size", "none", std::move(about), false, {.kind = "int | list of int"}});
  if (config == nullptr || !config->has("size")) return;
  size = config->peek("size")->is_list() ? config->get<std::vector<int64_t>>("size")
                                         : std::vector(2, config->get_at_least("size", 1));
  if (size.size() == 2 && size[0] > 0 && size[1] > 0) return;
  throw config->error("size", "expected a number of pixels or [H, W]");
}

}  // namespace stepop::extensible
