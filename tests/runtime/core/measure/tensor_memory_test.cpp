#include "runtime/core/measure/tensor_memory.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include <thread>

namespace stepop {
namespace tensor_memory_test {

constexpr auto kCpu = c10::DeviceType::CPU;

TEST_CASE("every byte of a tensor is counted from its making to its end") {
  const TensorMemory memory;
  CHECK(memory.now(kCpu) == 0);
  at::Tensor first = at::empty({1000}, at::kFloat);
  CHECK(memory.now(kCpu) == 4000);
  const at::Tensor view = first.view({10, 100});  // shares what is there
  CHECK(memory.now(kCpu) == 4000);
  {
    const at::Tensor second = at::empty({7}, at::kDouble);
    CHECK(memory.now(kCpu) == 4056);
  }
  CHECK(memory.now(kCpu) == 4000);
  first.reset();
  CHECK(memory.now(kCpu) == 4000);
  CHECK(memory.most(kCpu) == 4056);
}

TEST_CASE("the most of a part counts what was there when it began") {
  TensorMemory memory;
  const at::Tensor stays = at::empty({100}, at::kByte);
  { const at::Tensor goes = at::empty({900}, at::kByte); }
  CHECK(memory.most_of_part(kCpu) == 1000);
  memory.begin_part();
  CHECK(memory.most_of_part(kCpu) == 100);
  { const at::Tensor goes = at::empty({30}, at::kByte); }
  CHECK(memory.most_of_part(kCpu) == 130);
  CHECK(memory.now(kCpu) == 100);
  CHECK(memory.most(kCpu) == 1000);
}

TEST_CASE("what a graph keeps for its way back is counted, and given back by it") {
  const TensorMemory memory;
  at::Tensor weight = at::ones({250}, at::kFloat).set_requires_grad(true);
  CHECK(memory.now(kCpu) == 1000);
  const at::Tensor sum = weight.exp().sum();  // exp keeps its result
  CHECK(memory.now(kCpu) == 2004);
  sum.backward();
  CHECK(memory.now(kCpu) == 2004);  // the result went, the gradient came
  weight.mutable_grad().reset();
  CHECK(memory.now(kCpu) == 1004);
}

TEST_CASE("other threads and other times are not counted") {
  at::Tensor before = at::empty({1000}, at::kFloat);
  {
    const TensorMemory memory;
    std::thread([] { at::empty({1000}, at::kFloat); }).join();
    CHECK(memory.most(kCpu) == 0);
  }
  const at::Tensor between = at::empty({1000}, at::kFloat);
  const TensorMemory memory;
  CHECK(memory.now(kCpu) == 0);
  CHECK(memory.most(c10::DeviceType::CUDA) == 0);
}

}  // namespace tensor_memory_test
}  // namespace stepop
