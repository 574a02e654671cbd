#include "runtime/core/log/sink.h"

namespace stepop {

IntegrationRegistry& integrations() {
  static IntegrationRegistry registry("integration");
  return registry;
}

}  // namespace stepop
