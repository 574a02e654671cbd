#include "runtime/cli/run_profile.h"

#include <fmt/format.h>

#include "runtime/base/number_text.h"
#include "runtime/log/profile_text.h"
#include "runtime/run/device.h"
#include "runtime/system/atomic_file.h"

namespace stepop {

std::shared_ptr<Profile> begin_profile(const c10::Device& device) {
  if (device.is_cpu()) return std::make_shared<Profile>();
  return std::make_shared<Profile>([device] { synchronize(device); });
}

void end_profile(Profile& profile, const std::string& path, Console& console) {
  profile.stop();
  console.info(fmt::format("where the time of {} steps went:\n{}", with_thousands(profile.steps()),
                           profile_table(profile)));
  if (profile.waits_for_device()) {
    console.info(
        "the GPU was waited for where a part begins and ends: without --profile the training is "
        "faster");
  }
  write_file_atomically(path, chrome_trace(profile));
  console.info(fmt::format("the first {} steps, for chrome://tracing or ui.perfetto.dev: {}",
                           with_thousands(profile.traced_steps()), path));
}

}  // namespace stepop
