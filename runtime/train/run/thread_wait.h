#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// How computing threads wait for their next work: `thread_wait: auto | sleep | brief | spin`. It
/// only changes the speed. OpenMP reads it from the environment when it is loaded, so a program has
/// it from its start.
///
/// `auto`, the default: they look for work and keep the core busy, as long as no other program
/// wants the core; see SpinWatch. `sleep`: they leave the core at once. `brief`: they look for some
/// microseconds, then sleep. `spin`: they always keep looking.
inline constexpr const char* kThreadWaits[] = {"auto", "sleep", "brief", "spin"};

/// Environment variables; a variable without a value is not set.
using Variables = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// The variables that give a program this way of waiting.
Variables variables_of_thread_wait(const std::string& name);

/// Reads the config's value; empty when the key is missing. Throws UsageError for another word.
std::string read_thread_wait(const Config& config);

/// Sets or removes environment variables, for a program that starts after this call.
void set_variables(const Variables& variables);

/// Sets the variables of `auto`, if the environment has none of the variables.
void set_default_thread_wait();

/// The value whose variables this process was started with; `auto` without variables; empty for
/// the user's own.
std::string own_thread_wait();

}  // namespace stepop
