#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/ordered_map.h"

namespace stepop {

/// The versions of all libraries that stepop is linked with, and of the compiler:
/// `{"LibTorch": "2.13.0", "HDF5": "1.14.0", ...}`.
OrderedMap<std::string> library_versions();

/// Kernel, processor, number of cores, GPUs and their driver, as far as the system reports them.
OrderedMap<std::string> machine_facts();

/// The first processor in the text of /proc/cpuinfo: its model, or, as Linux knows an ARM
/// processor by numbers alone, `ARM, implementer 0x41, part 0xd0c`; empty if neither is there.
std::string processor_name(const std::string& cpuinfo);

/// The environment variables on which a training may depend, such as OMP_NUM_THREADS: only
/// variables with known prefixes and names. A variable whose name suggests a secret is left out,
/// and its name is added to `hidden`.
OrderedMap<std::string> environment_that_matters(std::vector<std::string>& hidden);

/// Whether a variable of this name is among these: a name that shells can set, with a known prefix.
bool matters_in_environment(std::string_view name);

/// Whether the value of a variable of this name must not be written down: `WANDB_API_KEY`.
bool may_be_secret(std::string_view name);

}  // namespace stepop
