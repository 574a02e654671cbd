#include "iterators/extensible/step/gate.h"

#include <fmt/format.h>

#include "runtime/train/when/duration.h"
namespace stepop::extensible {

Gate::Gate(const Config& part, bool with_every)
    : after(read_length_or(part, "after", 0, 0)),
      before(read_length_or(part, "before", 0, kForever)) {
  if (with_every) every = part.get_at_least("every", 1, 1);
  if (before < after) {
    throw part.error("before",
                     fmt::format("it is never on: after is {}, before is {}", after, before));
  }
  if (before / every * every < after) {
    throw part.error("every", fmt::format("it is never on: no multiple of {} is from {} to {}",
                                          every, after, before));
  }
}

int64_t first_iteration(const Config& config) {
  const Config root = config.root();
  return root.has("start_step") ? root.get_at_least("start_step", -1) + 1 : 0;
}

}  // namespace stepop::extensible
