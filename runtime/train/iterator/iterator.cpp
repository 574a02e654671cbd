#include "runtime/train/iterator/iterator.h"

#include "runtime/train/iterator/splits.h"

namespace stepop {

IteratorRegistry& iterators() {
  static IteratorRegistry registry("iterator");
  return registry;
}

const Batch& Iterator::get_fixed_examples(const std::string& split) const {
  return context_.splits.fixed_examples(split);
}

}  // namespace stepop
