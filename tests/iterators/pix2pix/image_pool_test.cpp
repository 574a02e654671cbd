#include "iterators/pix2pix/image_pool.h"

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/tensor_values.h"
#include "tests/test_run.h"

namespace stepop::pix2pix {
namespace image_pool_test {

/// A run whose context a pool is a part of.
struct PoolOfRun {
  explicit PoolOfRun(int64_t capacity)
      : run("iterator: Classifier\nmodel: {class: MLP, inputs: 2, classes: 2}\n"
            "optimizer: {class: SGD, lr: 0.1}\nbatch_size: 1\nnum_steps: 1\nseed: 3\n"
            "datasets: {train: {class: Synthetic, size: 2, shape: [2, 1, 1], classes: 2}}\n"),
        pool(run.session.context(), capacity) {}

  TestRun run;
  ImagePool pool;
};

at::Tensor image_of(double number) { return at::full({1, 1, 2, 2}, number); }

TEST_CASE("a pool of 0 gives back what it gets, without a graph") {
  PoolOfRun made(0);
  const at::Tensor image = image_of(3).requires_grad_();
  const at::Tensor back = made.pool.exchange(image);
  CHECK(back.is_same_size(image));
  CHECK_FALSE(back.requires_grad());
  CHECK(back.data_ptr() == image.data_ptr());
}

TEST_CASE("a pool fills first, then half of the images come from earlier steps, each once") {
  PoolOfRun made(20);
  std::multiset<float> seen;
  int from_earlier = 0;
  for (int i = 0; i < 420; ++i) {
    const float number = values_of<float>(made.pool.exchange(image_of(i))).front();
    seen.insert(number);
    const bool is_itself = number == static_cast<float>(i);
    if (i < 20) CHECK(is_itself);
    CHECK(number <= static_cast<float>(i));
    from_earlier += is_itself ? 0 : 1;
  }
  // 400 draws with the chance 1/2: 160 to 240 is four deviations.
  CHECK(from_earlier > 160);
  CHECK(from_earlier < 240);
  // Once while the pool filled, and once when it was exchanged.
  for (const float number : seen) CHECK(seen.count(number) <= (number < 20 ? 2 : 1));
}

TEST_CASE("images of one batch are exchanged one by one") {
  PoolOfRun made(2);
  const at::Tensor batch = at::stack({image_of(1)[0], image_of(2)[0], image_of(3)[0]});
  const at::Tensor first = made.pool.exchange(batch);
  CHECK(first.sizes() == batch.sizes());
  CHECK(values_of<float>(first).front() == 1);
  // What is given back is a copy: a discriminator may not change the pool.
  first.zero_();
  for (int i = 0; i < 20; ++i) {
    CHECK(made.pool.exchange(image_of(4)).min().item<float>() > 0);
  }
}

}  // namespace image_pool_test
}  // namespace stepop::pix2pix
