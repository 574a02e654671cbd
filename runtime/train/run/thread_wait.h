#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// How the threads that compute wait for their next piece of work: `thread_wait: auto | sleep |
/// brief | spin`. It changes the speed alone. OpenMP reads it from the environment when it is
/// loaded, so a program has it from its start on.
///
/// `auto`, the default: they look for it and keep the core busy, as long as nothing else wants
/// that; see SpinWatch. `sleep`: they leave the core at once. `brief`: they look for some
/// microseconds, then sleep. `spin`: they keep looking whatever else there is.
inline constexpr const char* kThreadWaits[] = {"auto", "sleep", "brief", "spin"};

/// Variables of the environment; one without a value is not set.
using Variables = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// The variables with which a program waits so.
Variables variables_of_thread_wait(const std::string& name);

/// That of the config; empty where the key is missing. Throws UsageError for another word.
std::string read_thread_wait(const Config& config);

/// The one whose variables this process was started with; empty for variables of the user's own.
std::string own_thread_wait();

}  // namespace stepop
