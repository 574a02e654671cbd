#include "runtime/train/checks/convolution_count.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <functional>
#include <vector>

namespace stepop {
namespace {

ConvolutionCount count_of(const std::function<void()>& work) {
  ConvolutionCount count;
  const ConvolutionCounter counter(count);
  work();
  return count;
}

at::Tensor images(int64_t examples, int64_t channels = 1, int64_t size = 28) {
  return at::zeros({examples, channels, size, size});
}

}  // namespace

TEST_CASE("multiplications are those of each output, and of each input where it is transposed") {
  const auto count = count_of([] {
    at::conv2d(images(4), at::zeros({6, 1, 5, 5}), {}, 1, 2);       // [4, 6, 28, 28]
    at::conv2d(images(4, 6, 14), at::zeros({16, 6, 5, 5}), {}, 2);  // [4, 16, 5, 5]
  });
  CHECK(count.convolutions == 2);
  CHECK(count.multiplications == 4 * 6 * 28 * 28 * 25 + 4 * 16 * 5 * 5 * 150);
  CHECK(count.most_examples == 4);
  CHECK(!count.needs_onednn);
  const auto transposed = count_of([] {
    at::conv_transpose2d(images(2, 8, 4), at::zeros({8, 3, 4, 4}), {}, 2, 1);
  });
  CHECK(transposed.multiplications == 2 * 8 * 4 * 4 * 3 * 16);
  const auto line = count_of([] {
    at::conv1d(at::zeros({3, 4, 10}), at::zeros({5, 4, 3}), {}, 1, 1);
  });
  CHECK(line.multiplications == 3 * 5 * 10 * 12);
  CHECK(line.most_examples == 3);
}

TEST_CASE("convolutions are small by what one of them has, by threads and by examples") {
  const auto lenet = [](int64_t examples) {
    return count_of([&] { at::conv2d(images(examples), at::zeros({6, 1, 5, 5}), {}, 1, 2); });
  };
  CHECK(lenet(4).is_small(1));
  CHECK(lenet(15).is_small(1));
  CHECK(!lenet(16).is_small(1));
  const auto wide = count_of([] {
    at::conv2d(images(2, 16), at::zeros({16, 16, 3, 3}), {}, 1, 1);
  });
  CHECK(wide.mean() == 2 * 16 * 28 * 28 * 144);  // 3.6 million
  CHECK(!wide.is_small(1));
  CHECK(wide.is_small(2));
  CHECK(!ConvolutionCount().is_small(1));
}

TEST_CASE("what is slow without oneDNN at any size keeps it") {
  const auto image = images(2, 4, 8);
  const auto needs = [](const std::function<void()>& work) { return count_of(work).needs_onednn; };
  CHECK(!needs([&] { at::conv2d(image, at::zeros({4, 4, 3, 3})); }));
  CHECK(needs([&] { at::conv2d(image, at::zeros({4, 1, 3, 3}), {}, 1, 1, 1, /*groups=*/4); }));
  CHECK(needs([&] { at::conv2d(image, at::zeros({4, 4, 3, 3}), {}, 1, 2, /*dilation=*/2); }));
  CHECK(needs([&] {
    at::conv2d(image.to(at::kBFloat16), at::zeros({4, 4, 3, 3}, at::kBFloat16));
  }));
  CHECK(needs([&] { at::matmul(at::zeros({2, 3}, at::kHalf), at::zeros({3, 2}, at::kHalf)); }));
  CHECK(needs([] {
    at::lstm(at::zeros({2, 1, 3}), {at::zeros({1, 1, 3}), at::zeros({1, 1, 3})},
             {at::zeros({12, 3}), at::zeros({12, 3})}, /*has_biases=*/false, /*num_layers=*/1,
             /*dropout=*/0, /*train=*/true, /*bidirectional=*/false, /*batch_first=*/false);
  }));
}

TEST_CASE("a call by an interpreter shows more than its arguments") {
  const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
  using Sizes = std::vector<int64_t>;
  const auto count = count_of([&] {
    c10::Stack stack = {c10::IValue(7), images(2),   at::zeros({6, 1, 5, 5}),
                        c10::IValue(),  Sizes{1, 1}, Sizes{2, 2},
                        Sizes{1, 1},    false,       Sizes{0, 0},
                        int64_t{1}};
    operation.callBoxed(stack);
    CHECK(stack.size() == 2);
  });
  CHECK(count.convolutions == 1);
  CHECK(count.multiplications == 2 * 6 * 28 * 28 * 25);
  const auto direct = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_convolution", "");
  const auto boxed = count_of([&] {
    c10::Stack stack = {c10::IValue(7), images(2),   at::zeros({6, 1, 5, 5}),
                        c10::IValue(),  Sizes{1, 1}, Sizes{2, 2},
                        Sizes{1, 1},    false,       Sizes{0, 0},
                        int64_t{1},     false,       false,
                        true,           true};
    direct.callBoxed(stack);
  });
  CHECK(boxed.multiplications == count.multiplications);
}

TEST_CASE("a counter counts until its end, and within another one in its place") {
  ConvolutionCount outer;
  const auto convolve = [] { at::conv2d(images(1), at::zeros({1, 1, 3, 3})); };
  {
    const ConvolutionCounter counter(outer);
    CHECK(count_of(convolve).convolutions == 1);
    convolve();
  }
  convolve();
  CHECK(outer.convolutions == 1);
}

}  // namespace stepop
