#include "runtime/core/system/quick_end.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace stepop {

void end_quickly() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const char* preloaded = std::getenv("LD_PRELOAD");
  if (preloaded != nullptr && *preloaded != 0) return;
  // Called in reverse order, as destructors are.
  ::on_exit(
      [](int status, void* /*nothing*/) {
        for (std::ostream* stream : {&std::cout, &std::cerr, &std::clog}) stream->flush();
        std::fflush(nullptr);
        ::_exit(status);
      },
      nullptr);
#endif
}

}  // namespace stepop
