#include "runtime/train/step/random_fork.h"
#include "runtime/train/networks/generators.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <doctest/doctest.h>

#include <stdexcept>

namespace stepop {
namespace random_fork_test {

TEST_CASE("after a fork the generator goes on as if nothing had been drawn") {
  seed_generators(3, c10::kCPU);
  const at::Tensor first = at::rand({4});
  const at::Tensor second = at::rand({4});
  seed_generators(3, c10::kCPU);
  CHECK(at::equal(at::rand({4}), first));
  {
    const RandomFork fork(9, c10::kCPU);
    at::rand({1000});
  }
  CHECK(at::equal(at::rand({4}), second));
}

TEST_CASE("a fork starts from its seed alone") {
  const auto drawn = [](uint64_t seed) {
    const RandomFork fork(seed, c10::kCPU);
    return at::rand({4});
  };
  const at::Tensor first = drawn(1);
  at::rand({17});
  CHECK(at::equal(drawn(1), first));
  CHECK_FALSE(at::equal(drawn(2), first));
}

TEST_CASE("forks nest, and an exception ends one as well") {
  seed_generators(3, c10::kCPU);
  const at::Tensor state = generator_state(c10::kCPU);
  try {
    const RandomFork outer(1, c10::kCPU);
    const at::Tensor of_outer = generator_state(c10::kCPU);
    {
      const RandomFork inner(2, c10::kCPU);
      at::rand({3});
    }
    CHECK(at::equal(generator_state(c10::kCPU), of_outer));
    throw std::runtime_error("an op failed");
  } catch (const std::runtime_error&) {
  }
  CHECK(at::equal(generator_state(c10::kCPU), state));
}

TEST_CASE("a saved state gives the same numbers again") {
  const at::Tensor state = generator_state(c10::kCPU);
  const at::Tensor drawn = at::rand({3});
  set_generator_state(c10::kCPU, state);
  CHECK(at::equal(at::rand({3}), drawn));
}

}  // namespace random_fork_test
}  // namespace stepop
