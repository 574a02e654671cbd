// Gradients of parameters that all processes use, one does and none does, against sums by hand.

#include "runtime/train/distributed/gradient_sum.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <chrono>

#include "tests/runtime/train/distributed/together.h"

namespace stepop {
namespace gradient_sum_test {

using Texts = std::vector<std::string>;

/// `all` is used by all processes, `one` by rank 1 alone, `none` by nobody; `frozen` is not
/// trained.
struct Parameters {
  at::Tensor all = at::arange(6, at::kFloat).view({2, 3}).requires_grad_();
  at::Tensor one = at::full({4}, 2.0, at::kDouble).requires_grad_();
  at::Tensor none = at::full({2}, 3.0, at::kFloat).requires_grad_();
  at::Tensor frozen = at::full({2}, 5.0, at::kFloat);
  at::Tensor big = at::full({300'000}, 1.0, at::kFloat).requires_grad_();  // a bucket of its own

  std::vector<at::Tensor> list() const { return {all, one, none, frozen, big}; }

  /// Its gradient: (rank + 1) * factor for `all` and `big`, of rank 1 also 4 * factor for `one`.
  at::Tensor loss(int rank, double factor) const {
    at::Tensor loss = ((all.sum() + big.sum()) * ((rank + 1) * factor)).to(at::kDouble);
    if (rank == 1) loss = loss + (one * one).sum() * factor;
    return loss;
  }
};

bool is_all(const at::Tensor& gradient, double value, const at::Tensor& like) {
  return gradient.defined() && gradient.sizes() == like.sizes() &&
         gradient.scalar_type() == like.scalar_type() &&
         at::allclose(gradient, at::full_like(like, value));
}

/// What differs from the sums of three processes, each times `factor`.
std::string wrong(const Parameters& parameters, double factor) {
  std::string text;
  if (!is_all(parameters.all.grad(), 6 * factor, parameters.all)) text += "all ";
  if (!is_all(parameters.big.grad(), 6 * factor, parameters.big)) text += "big ";
  if (!is_all(parameters.one.grad(), 4 * factor, parameters.one)) text += "one ";
  if (parameters.none.grad().defined()) text += "none ";
  if (parameters.frozen.grad().defined()) text += "frozen ";
  return text;
}

void clear(const Parameters& parameters) {
  for (const at::Tensor& tensor : parameters.list()) tensor.mutable_grad().reset();
}

TEST_CASE("gradients after several backwards are summed, with those that only one process has") {
  CHECK(together(3, [](World& world) {
          const Parameters parameters;
          GradientSum sum(world, parameters.list());
          std::string text;
          for (const double factor : {1.0, 0.5}) {
            parameters.loss(world.rank(), factor).backward();
            parameters.loss(world.rank(), factor).backward();
            sum.sum();
            text += wrong(parameters, 2 * factor);
            clear(parameters);
          }
          return text;
        }) == Texts(3));
}

TEST_CASE("a sum without any gradient leaves all undefined") {
  CHECK(together(2, [](World& world) {
          const Parameters parameters;
          GradientSum(world, parameters.list()).sum();
          std::string text;
          for (const auto& tensor : parameters.list()) text += tensor.grad().defined() ? "x" : "";
          return text;
        }) == Texts(2));
}

TEST_CASE("gradients are summed while they are computed, with those that only one process has") {
  CHECK(together(3, [](World& world) {
          const Parameters parameters;
          GradientSum sum(world, parameters.list());
          std::string text;
          for (const double factor : {1.0, 0.5, 2.0}) {
            const at::Tensor loss = parameters.loss(world.rank(), factor);
            sum.overlap(loss, [&] { loss.backward(); });
            text += wrong(parameters, factor);
            clear(parameters);
          }
          return text;
        }) == Texts(3));
}

TEST_CASE("a profile knows how long the sums took, what of it was waited for, and each of them") {
  CHECK(together(2, [](World& world) {
          const Parameters parameters;
          GradientSum sum(world, parameters.list());
          Profile profile;
          for (int i = 0; i < 3; ++i) {
            const Span backward(&profile, "backward");
            const at::Tensor loss = parameters.loss(world.rank(), 1);
            sum.overlap(
                loss, [&] { loss.backward(); }, i < 2 ? &profile : nullptr);
          }
          profile.stop();
          std::string text;
          const Profile::Part& backward = *profile.whole().parts.at(0);
          const Profile::Part& waiting = *backward.parts.at(0);
          if (waiting.name != "waiting for sums of gradients" || waiting.count != 2)
            text += "part ";
          if (!(profile.sums() > profile.sums_beside()) || profile.sums_beside().count() <= 0)
            text += "sums ";
          int64_t big = 0;
          for (const auto& event : profile.events()) big += event.name == "sum 1.2 MB" ? 1 : 0;
          if (big != 2 || profile.threads().back() != "between processes") text += "trace ";
          return text;
        }) == Texts(2));
}

TEST_CASE("gradients that travel in one message have nothing to overlap with") {
  CHECK(together(2, [](World& world) {
          const at::Tensor large = at::zeros({300'000}, at::kFloat).requires_grad_();
          const at::Tensor small = at::zeros({200'000}, at::kFloat).requires_grad_();
          const bool is_right = GradientSum(world, {large}).overlaps() &&
                                !GradientSum(world, {small}).overlaps() &&
                                GradientSum(world, {small, large}).overlaps() &&
                                !GradientSum(world, {small, large.detach()}).overlaps();
          return std::string(is_right ? "" : "wrong");
        }) == Texts(2));
}

TEST_CASE("both kinds of sums may take turns") {
  CHECK(together(2, [](World& world) {
          const at::Tensor weight = at::full({3}, 1.0, at::kFloat).requires_grad_();
          GradientSum sum(world, {weight});
          std::string text;
          for (int i = 0; i < 4; ++i) {
            const at::Tensor loss = weight.sum() * (10.0 * world.rank() + i);
            if (i % 2 == 0) {
              sum.overlap(loss, [&] { loss.backward(); });
            } else {
              loss.backward();
              sum.sum();
            }
            if (!is_all(weight.grad(), 10 + 2 * i, weight)) text += std::to_string(i);
            weight.mutable_grad().reset();
          }
          return text;
        }) == Texts(2));
}

TEST_CASE("a parameter that is frozen, and trained again, is summed when it is trained") {
  CHECK(together(2, [](World& world) {
          const at::Tensor first = at::full({3}, 1.0, at::kFloat).requires_grad_();
          const at::Tensor second = at::full({2}, 1.0, at::kFloat).requires_grad_();
          GradientSum sum(world, {first, second});
          std::string text;
          for (const bool is_trained : {true, false, true}) {
            first.requires_grad_(is_trained);
            const at::Tensor loss = (first.sum() + second.sum()) * (world.rank() + 1.0);
            sum.overlap(loss, [&] { loss.backward(); });
            if (is_trained != is_all(first.grad(), 3, first)) text += "first ";
            if (!is_all(second.grad(), 3, second)) text += "second ";
            first.mutable_grad().reset();
            second.mutable_grad().reset();
          }
          return text;
        }) == Texts(2));
}

TEST_CASE("gradients that are not contiguous are summed in their own layout") {
  CHECK(together(2, [](World& world) {
          const at::Tensor weight = at::zeros({2, 3}, at::kFloat).t().requires_grad_();
          const at::Tensor factors = at::arange(6, at::kFloat).view({3, 2});
          GradientSum sum(world, {weight});
          std::string text;
          for (const bool overlaps : {false, true}) {
            const at::Tensor loss = (weight * factors).sum() * (world.rank() + 1.0);
            if (overlaps) {
              sum.overlap(loss, [&] { loss.backward(); });
            } else {
              loss.backward();
              sum.sum();
            }
            if (!at::allclose(weight.grad(), factors * 3)) text += overlaps ? "overlapped" : "flat";
            weight.mutable_grad().reset();
          }
          return text;
        }) == Texts(2));
}

TEST_CASE("a process that ends within a backward ends the others there") {
  const Texts texts = together(2, [](World& world) {
    const at::Tensor weight = at::full({3}, 1.0, at::kFloat).requires_grad_();
    GradientSum sum(world, {weight});
    for (int i = 0; i < 2; ++i) {
      const at::Tensor loss = weight.sum();
      sum.overlap(loss, [&] {
        if (i == 1 && world.rank() == 1) throw Error("the op failed");
        loss.backward();
      });
      weight.mutable_grad().reset();
    }
    return std::string("nothing");
  });
  CHECK(texts[1] == "Error: the op failed");
  CAPTURE(texts[0]);
  CHECK(texts[0].starts_with("PeerError: rank 1 on "));
  CHECK(texts[0].ends_with(": the op failed"));
}

}  // namespace gradient_sum_test
}  // namespace stepop
