#include "runtime/train/checkpoint/shared_state.h"

#include <ATen/ops/full.h>
#include <doctest/doctest.h>

#include "tests/runtime/train/distributed/together.h"
#include "tests/same_state.h"

namespace stepop {
namespace shared_state_test {

using Texts = std::vector<std::string>;

at::Tensor number(double value) { return at::full({2}, value, at::kDouble); }

/// Weights that all share; a generator of each; a counter that only rank 2 has otherwise.
State state_of(int rank) {
  State state{{"model.weight", number(1)},
              {"generator.state", number(rank)},
              {"generator.count", number(9)},
              {"counter", number(rank == 2 ? 8 : 7)}};
  if (rank == 1) state["buffer.filled"] = number(4);
  return state;
}

bool of_model(std::string_view name) { return name == "model"; }

std::string names_of(const State& state) {
  std::string names;
  for (const auto& [name, tensor] : state) names += name + " ";
  return names;
}

TEST_CASE("a state of several processes is rank 0's, with what differs in the others") {
  const Texts texts = together(3, [](World& world) {
    return names_of(gathered_state(world, state_of(world.rank()), of_model));
  });
  CHECK(texts[0] ==
        "counter generator.count generator.state model.weight rank_1/buffer.filled "
        "rank_1/generator.count rank_1/generator.state rank_2/counter rank_2/generator.count "
        "rank_2/generator.state ");
}

TEST_CASE("each process finds its own part in the state of all") {
  const Texts texts = together(3, [](World& world) {
    const State whole = gathered_state(world, state_of(world.rank()), of_model);
    if (!world.is_root()) return std::string();
    std::string wrong;
    for (int rank = 0; rank < 3; ++rank) {
      wrong += differences(state_of_rank(whole, rank), state_of(rank));
    }
    return wrong;
  });
  CHECK(texts == Texts(3));
}

TEST_CASE("a process more than there were has rank 0's state") {
  State whole = state_of(0);
  whole["rank_1/generator.state"] = number(1);
  CHECK(differences(state_of_rank(whole, 2), state_of(0)) == "");
  CHECK(differences(state_of_rank(whole, 0), state_of(0)) == "");
}

TEST_CASE("a part of rank 1 is not that of rank 11, and a name may begin alike") {
  const State whole{{"a", number(0)}, {"rank_11/a", number(11)}, {"rank_loss/b", number(3)}};
  CHECK(differences(state_of_rank(whole, 1), {{"a", number(0)}, {"rank_loss/b", number(3)}}) == "");
  CHECK(differences(state_of_rank(whole, 11), {{"a", number(11)}, {"rank_loss/b", number(3)}}) ==
        "");
}

TEST_CASE("what must agree and does not is named with the processes") {
  const Texts texts = together(2, [](World& world) {
    State state = state_of(world.rank());
    if (world.rank() == 1) state["model.weight"] = number(1.5);
    gathered_state(world, state, of_model);
    return std::string("nothing");
  });
  CHECK(texts[0].starts_with("Error: \"model.weight\" is not the same in rank 1 on "));
  CHECK(texts[0].find(" as in rank 0 on ") != std::string::npos);
  CHECK(texts[1].starts_with("PeerError: rank 0 on "));
  CHECK(texts[1].find("\"model.weight\" is not the same in rank 1 on ") != std::string::npos);
}

TEST_CASE("rank 0's checkpoint becomes everybody's") {
  const Texts texts = together(2, [](World& world) {
    std::optional<Checkpoint> own;
    if (broadcast_checkpoint(world, own)) return std::string("one came from nowhere");
    if (world.is_root()) {
      own.emplace();
      own->tensors = state_of(0);
      own->config = "a: 1\n";
      own->made_by = "me";
      own->checksum = "x";
      own->progress.global_step = 12;
      own->progress.processes = 2;
    }
    const auto shared = broadcast_checkpoint(world, own);
    return fmt::format("{}{} {} {} {} {}", differences(shared->tensors, state_of(0)),
                       shared->progress.global_step, shared->progress.processes, shared->config,
                       shared->made_by, shared->checksum);
  });
  CHECK(texts == Texts(2, "12 2 a: 1\n me x"));
}

}  // namespace shared_state_test
}  // namespace stepop
