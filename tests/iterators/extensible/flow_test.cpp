#include "iterators/extensible/flow.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "iterators/extensible/step/gate.h"
#include "runtime/core/base/error.h"

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
  std::set<int64_t> later;
  for (int64_t i = 26; i < 10000; ++i) later.insert(open_in(gates, i));
  found.clear();
  for (const int64_t i : kinds_of_iterations(steps_with(gates), {}, 26)) {
    CHECK(i >= 26);
    found.insert(open_in(gates, i));
  }
  CHECK((found == later));
}

TEST_CASE("too many kinds of iterations are refused") {
  std::vector<Gate> gates(11);
  for (size_t i = 0; i < gates.size(); ++i) gates[i].every = static_cast<int64_t>(i) + 2;
  CHECK_THROWS_WITH_AS(kinds_of_iterations(steps_with(gates)),
                       "steps: expected 10 different values of every at most, found 11",
                       UsageError);
}

TEST_CASE("a tensor is freed behind the last part that reads it, and handed on to no other step") {
  Keys keys;
  const Slot x = keys.slot("x"), a = keys.slot("a"), b = keys.slot("b"), c = keys.slot("c"),
             unread = keys.slot("unread");
  std::vector<Step> steps(2);
  const auto add = [](Step& step, const std::vector<Slot>& reads, const std::vector<Slot>& writes) {
    InjectorPart& part = step.injectors.emplace_back();
    for (const Slot slot : reads) part.reads.push_back({slot, ""});
    for (const Slot slot : writes) part.writes.push_back({slot, ""});
  };
  add(steps[0], {x}, {a, unread});
  add(steps[0], {a}, {b});
  add(steps[1], {x}, {c});
  steps[1].losses.emplace_back().reads.push_back({b, ""});
  plan_memory(steps, /*kept=*/{c});
  CHECK((steps[0].injectors[0].frees == std::vector<Slot>{unread}));
  CHECK((steps[0].injectors[1].frees == std::vector<Slot>{a}));
  CHECK((steps[0].hands_on == std::vector<Slot>{b}));
  CHECK((steps[1].injectors[0].frees == std::vector<Slot>{x}));
  CHECK((steps[1].losses[0].frees == std::vector<Slot>{b}));
  CHECK((steps[1].hands_on == std::vector<Slot>{c}));
}

}  // namespace extensible_flow_test
}  // namespace stepop
