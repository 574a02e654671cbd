#pragma once

#include <pthread.h>

#include <cstddef>
#include <stdexcept>

namespace stepop {

/// While it lives, a new thread asks for a stack as large as all addresses, so none can start.
class HugeStacks {
 public:
  HugeStacks() {
    pthread_attr_t huge;
    const bool is_set = pthread_getattr_default_np(&before_) == 0 &&
                        pthread_attr_init(&huge) == 0 &&
                        pthread_attr_setstacksize(&huge, size_t{1} << 47) == 0 &&
                        pthread_setattr_default_np(&huge) == 0;
    if (!is_set) throw std::runtime_error("the size of stacks cannot be set");
    pthread_attr_destroy(&huge);
  }
  ~HugeStacks() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  HugeStacks(const HugeStacks&) = delete;
  HugeStacks& operator=(const HugeStacks&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace stepop
