#include "runtime/base/error.h"

#include <c10/util/Exception.h>

namespace stepop {

std::string error_text(const std::exception& error) {
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  return from_torch != nullptr ? from_torch->what_without_backtrace() : error.what();
}

}  // namespace stepop
