#include "runtime/train/optim/pieces.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

namespace stepop {
namespace pieces_test {

TEST_CASE("pieces are views of all elements, whatever the order of a tensor's memory is") {
  const at::Tensor rows = at::arange(60, at::kFloat).view({3, 4, 5});
  for (const at::Tensor& whole : {rows.clone(), rows.clone().permute({2, 0, 1})}) {
    const at::Tensor before = whole.clone();
    const auto pieces = pieces_of(whole, 25);
    REQUIRE(pieces.size() == 3);
    CHECK(pieces[0].numel() == 25);
    CHECK(pieces[2].numel() == 10);
    for (const at::Tensor& piece : pieces) piece.add_(1);
    CHECK(whole.equal(before + 1));
  }
  const at::Tensor column = rows.select(2, 1);
  CHECK(pieces_of(column, 12).front().is_same(column));
}

TEST_CASE("tensors have one layout if their elements lie in one order, without gaps") {
  const at::Tensor a = at::zeros({4, 6});
  CHECK(have_one_layout({a, at::zeros({4, 6})}));
  CHECK_FALSE(have_one_layout({a, at::zeros({6, 4}).t()}));
  CHECK_FALSE(have_one_layout({at::zeros({4, 8}).narrow(1, 0, 6)}));
}

TEST_CASE("a small network has pieces of 4,096, a large one no more than a launch takes") {
  CHECK(piece_size({at::zeros({61'706})}) == 4096);
  const int64_t size = piece_size({at::zeros({3'000'000}), at::zeros({1'000})});
  CHECK(size % 4096 == 0);
  CHECK(3'000'000 / size + 2 <= 48);
  CHECK(size < 2 * 3'001'000 / 40);
}

}  // namespace pieces_test
}  // namespace stepop
