#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/ordered_map.h"

namespace stepop {

/// The versions of all libraries that stepop is linked with, and of the compiler:
/// `{"LibTorch": "2.13.0", "HDF5": "1.14.0", ...}`.
OrderedMap<std::string> library_versions();

/// Kernel, processor, number of cores, GPUs and their driver, as far as the system tells.
OrderedMap<std::string> machine_facts();

/// The environment's variables on which a training may depend, such as OMP_NUM_THREADS: those of
/// known beginnings and names, never all. What may be a secret by its name is left out, and
/// its name added to `hidden`.
OrderedMap<std::string> environment_that_matters(std::vector<std::string>& hidden);

/// Whether a variable of this name is among these: a name that shells can set, with a known
/// beginning.
bool matters_in_environment(std::string_view name);

/// Whether the value of a variable of this name is not to be written down: `WANDB_API_KEY`.
bool may_be_secret(std::string_view name);

}  // namespace stepop
