#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>

#include "runtime/log/console.h"
#include "runtime/measure/profile.h"

namespace stepop {

/// A profile that begins now, of work on `device`: a GPU is waited for at the borders of its parts.
std::shared_ptr<Profile> begin_profile(const c10::Device& device);

/// Ends it, shows its table, and writes its trace to `path`. Throws Error when that cannot be
/// written.
void end_profile(Profile& profile, const std::string& path, Console& console);

}  // namespace stepop
