#include "eval_out/evaluation_callbacks.h"

#include <fmt/format.h>

#include "runtime/error_text.h"
#include "runtime/log/image_grid.h"

namespace stepop {
namespace {

/// All scalars of one callback, under their full names.
OrderedMap<double> read_scalars(const std::string& prefix, const Logs& logs) {
  OrderedMap<double> scalars;
  for (const auto& [key, value] : logs.scalars) {
    const std::string full = fmt::format("{}/{}", prefix, key);
    scalars.set(full, value.read(full));
  }
  return scalars;
}

}  // namespace

CallbackScalars look_at_outputs(const Config& config, const std::string& op, int64_t step,
                                const std::string& folder, const Dataset& data_in,
                                const EvalFile& data_out) {
  CallbackResults results = run_callbacks(config, kEvalCallbacks, folder, data_in, data_out);
  CallbackScalars found{{}, std::move(results.failures)};
  for (const auto& [name, logs] : results.logs) {
    try {
      for (const auto& [key, value] : read_scalars(fmt::format("{}/{}", op, name), logs)) {
        found.scalars.set(key, value);
      }
    } catch (const std::exception& error) {
      found.failures.set(name, error_text(error));
      continue;
    }
    for (const auto& [key, image] : logs.images) {
      write_image_grid(fmt::format("{}/{}/{}", folder, name, key), step, image);
    }
  }
  return found;
}

}  // namespace stepop
