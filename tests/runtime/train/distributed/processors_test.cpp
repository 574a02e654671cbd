#include "runtime/train/distributed/processors.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace stepop {
namespace processors_test {

using Shares = std::vector<std::vector<int>>;

/// A machine as Linux numbers it: first one processor of every core, then the other of each.
std::vector<Processor> machine(int packages, int cores, int threads) {
  std::vector<Processor> processors;
  for (int thread = 0; thread < threads; ++thread) {
    for (int package = 0; package < packages; ++package) {
      for (int core = 0; core < cores; ++core) {
        processors.push_back({static_cast<int>(processors.size()), package, core});
      }
    }
  }
  return processors;
}

TEST_CASE("processes share out a machine's cores, whole, and its packages before them") {
  CHECK(processor_shares(machine(1, 4, 1), 2) == Shares{{0, 1}, {2, 3}});
  CHECK(processor_shares(machine(1, 4, 2), 2) == Shares{{0, 4, 1, 5}, {2, 6, 3, 7}});
  CHECK(processor_shares(machine(2, 2, 2), 2) == Shares{{0, 4, 1, 5}, {2, 6, 3, 7}});
  CHECK(processor_shares(machine(2, 2, 2), 4) == Shares{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
}

TEST_CASE("shares that do not divide differ by one; with too few processors there are none") {
  CHECK(processor_shares(machine(1, 5, 1), 2) == Shares{{0, 1, 2}, {3, 4}});
  CHECK(processor_shares(machine(1, 3, 1), 3) == Shares{{0}, {1}, {2}});
  CHECK(processor_shares(machine(1, 2, 1), 3).empty());
  CHECK(processor_shares({}, 1).empty());
}

TEST_CASE("a process is bound to its share with all its threads") {
  const std::vector<Processor> all = own_processors();
  REQUIRE_FALSE(all.empty());
  const auto count = static_cast<int>(all.size());
  // In a process of its own: this one goes on with all processors.
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::string bound = bind_to_share(
        {.rank = count - 1, .size = count, .local_rank = count - 1, .local_size = count});
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof(set), &set);
    const int last = processor_shares(all, count).back().at(0);
    const bool is_right = CPU_COUNT(&set) == 1 && CPU_ISSET(last, &set) &&
                          bound == std::to_string(last) && own_processors().size() == 1;
    ::_exit(is_right ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(own_processors().size() == all.size());
  CHECK(bind_to_share({.size = count + 1, .local_size = count + 1}).empty());
}

}  // namespace processors_test
}  // namespace stepop
