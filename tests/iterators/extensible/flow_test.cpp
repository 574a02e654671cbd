#include "iterators/extensible/flow.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "iterators/extensible/gate.h"
#include "runtime/base/error.h"

namespace stepop {
namespace extensible_flow_test {

using namespace extensible;

std::vector<Step> steps_with(const std::vector<Gate>& gates) {
  std::vector<Step> steps;
  for (const auto& gate : gates) {
    steps.emplace_back();
    steps.back().gate = gate;
  }
  return steps;
}

/// Which gates are open, as one number.
int64_t open_in(const std::vector<Gate>& gates, int64_t iteration) {
  int64_t open = 0;
  for (size_t i = 0; i < gates.size(); ++i) {
    if (gates[i].is_open(iteration)) open |= int64_t{1} << i;
  }
  return open;
}

TEST_CASE("there is an iteration of each kind that the gates make, and no other kind exists") {
  std::vector<Gate> gates(5);
  gates[0].every = 4;
  gates[1].after = 10;
  gates[1].every = 6;
  gates[2].before = 25;
  gates[3].after = 7;
  gates[3].before = 30;
  gates[3].every = 9;
  gates[4].every = 1;
  std::set<int64_t> all;
  for (int64_t i = 0; i < 10000; ++i) all.insert(open_in(gates, i));
  std::set<int64_t> found;
  for (const int64_t i : kinds_of_iterations(steps_with(gates))) found.insert(open_in(gates, i));
  CHECK((found == all));
}

TEST_CASE("too many kinds of iterations are refused") {
  std::vector<Gate> gates(11);
  for (size_t i = 0; i < gates.size(); ++i) gates[i].every = static_cast<int64_t>(i) + 2;
  CHECK_THROWS_WITH_AS(kinds_of_iterations(steps_with(gates)),
                       "steps: expected 10 different values of every at most, found 11",
                       UsageError);
}

}  // namespace extensible_flow_test
}  // namespace stepop
