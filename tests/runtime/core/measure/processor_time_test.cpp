#include "runtime/core/measure/processor_time.h"

#include <doctest/doctest.h>

#include <chrono>

namespace stepop {
namespace processor_time_test {

TEST_CASE("a training whose threads wait for processors is told which setting helps") {
  CHECK(busy_machine_text({10, 1}, {20, 11}, 4) ==
        "the machine is busy: the threads of this training waited for a processor for 50 % of the "
        "time in which they had work; num_threads: 2 instead of 4 may be faster");
  CHECK(
      busy_machine_text({0, 0}, {1, 9}, 2).ends_with("num_threads: 1 instead of 2 may be faster"));
  CHECK(busy_machine_text({0, 0}, {1, 9}, 1).ends_with("in which they had work"));
  CHECK(busy_machine_text({10, 1}, {20, 3}, 4).empty());
  CHECK(busy_machine_text({10, 1}, {10.1, 1.3}, 4).empty());  // too little to tell
  CHECK(busy_machine_text({10, 5}, {8, 4}, 4).empty());       // threads have ended
}

TEST_CASE("the time on the processors grows with what is computed") {
  const auto before = processor_time();
  if (!before) return;  // a system that does not count it
  volatile double sum = 0;
  while (processor_time()->run < before->run + 0.05) {
    for (int i = 0; i < 100'000; ++i) sum = sum + i;
  }
  CHECK(processor_time()->wait >= before->wait);
}

TEST_CASE("the watch looks at no more than it must") {
  const auto now = ProcessorWatch::Clock::now();
  ProcessorWatch watch(2, now);
  CHECK(watch.look(now + std::chrono::seconds(1)).empty());
}

}  // namespace processor_time_test
}  // namespace stepop
