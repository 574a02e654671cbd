#include <fmt/format.h>
#include <torch/version.h>

#include "eval_out/hdf5/hdf5.h"
#include "runtime/cli/arguments.h"

namespace stepop {

std::string version_text() {
  return fmt::format("stepop {}\nLibTorch {}\nHDF5 {}.{}.{}\n", STEPOP_VERSION, TORCH_VERSION,
                     H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
}

}  // namespace stepop
