#include "runtime/train/iterator/iterator.h"

namespace stepop {

IteratorRegistry& iterators() {
  static IteratorRegistry registry("iterator");
  return registry;
}

}  // namespace stepop
