#include "runtime/tools/components/config_paths.h"
#include "runtime/tools/front/needs_libtorch.h"

namespace stepop {
namespace {

int config_command(const Arguments& arguments, const ConfigFlags& own) {
  const bool is_whole = own.keys || own.schema || arguments.base.empty();
  if (!own.paths || is_whole) throw NeedsLibTorch();
  return print_config_paths(arguments);
}

STEPOP_REGISTER_COMMAND(config_command, ConfigFlags, kConfigCommand);

}  // namespace
}  // namespace stepop
