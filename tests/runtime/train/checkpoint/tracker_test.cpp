#include "runtime/train/checkpoint/tracker.h"

#include <ATen/ops/full.h>
#include <doctest/doctest.h>

#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace tracker_test {

void track(Tracker& tracker, const std::string& name, at::Tensor& value) {
  tracker.add(
      name,
      [&value] {
        return State{{"value", value}};
      },
      [&value](const State& state) { value = state.at("value").clone(); });
}

TEST_CASE("what is tracked is saved under its name and comes back") {
  Tracker tracker;
  at::Tensor a = at::full({2}, 1.0), b = at::full({1}, 2.0);
  track(tracker, "a", a);
  track(tracker, "b", b);
  State state = tracker.save();
  CHECK(state.size() == 2);
  for (auto& [key, tensor] : state) tensor = tensor.clone();
  a.fill_(7);
  b.fill_(7);
  tracker.load("a", state);
  CHECK(values_of<float>(a) == std::vector<float>{1, 1});
  CHECK(values_of<float>(b) == std::vector<float>{7});
  tracker.load(state);
  CHECK(values_of<float>(b) == std::vector<float>{2});
}

TEST_CASE("a name that is taken, empty or dotted is refused") {
  Tracker tracker;
  at::Tensor a;
  track(tracker, "a", a);
  CHECK(message_of([&] { track(tracker, "a", a); }) ==
        "\"a\" is tracked twice; give the second another name");
  CHECK(message_of([&] { track(tracker, "a.b", a); }) ==
        "cannot track \"a.b\": a name must not be empty or contain a dot");
}

TEST_CASE("a state with what nobody tracks is refused") {
  const Tracker tracker;
  const State state = {
      {"ema.x", at::full({}, 1)}, {"ema.y", at::full({}, 1)}, {"model.w", at::full({}, 1)}};
  CHECK(message_of([&] { tracker.load(state); }) ==
        "it holds what this run does not track: ema, model. Give the config that it was "
        "trained with; or start a new run with its weights: -r");
}

}  // namespace tracker_test
}  // namespace stepop
