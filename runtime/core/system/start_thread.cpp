#include "runtime/core/system/start_thread.h"

#include <fmt/format.h>

#include "runtime/core/base/error.h"

namespace stepop {

void fail_thread(const std::string& task, const std::system_error& error) {
  throw Error(
      fmt::format("cannot start the thread that {}: {}; ulimit -u (processes and threads) and "
                  "ulimit -v (memory) show the limits of this shell",
                  task, error.code().message()));
}

}  // namespace stepop
