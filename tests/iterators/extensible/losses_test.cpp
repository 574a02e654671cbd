// Losses by themselves, against their formulas.
#include <ATen/Context.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rot90.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "iterators/losses/loss_manager.h"
#include "runtime/core/base/error.h"
#include "tests/iterators/extensible/workbench.h"
#include "tests/message_of.h"

namespace stepop {
namespace extensible_losses_test {

using namespace extensible;

TEST_CASE("losses that compare values") {
  Workbench bench;
  const at::Tensor x = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kFloat).reshape({2, 2});
  bench.set("x", x);
  bench.set("y", at::tensor({2.0, 2.0, 1.0, 8.0}, at::kFloat).reshape({2, 2}));
  CHECK(bench.loss("{type: pix, criterion: l1, real: x, fake: y}") == doctest::Approx(7.0 / 4));
  CHECK(bench.loss("{type: pix, criterion: l2, real: x, fake: y}") == doctest::Approx(21.0 / 4));
  CHECK(bench.loss("{type: pix, criterion: l1, real: x, fake: y, real_scale: 2, real_offset: 1}") ==
        doctest::Approx((1 + 3 + 6 + 1) / 4.0));
  // 1 - cos of (1, 2), (2, 2) and of (3, 4), (1, 8).
  CHECK(bench.loss("{type: pix, criterion: cosine, real: x, fake: y}") ==
        doctest::Approx((1 - 6 / std::sqrt(40.0) + 1 - 35 / std::sqrt(25.0 * 65)) / 2));
  CHECK(bench.loss("{type: direct, key: x}") == doctest::Approx(2.5));
  CHECK(bench.loss("{type: direct, key: x, inverted: true, annealing_termination_step: 10}", 4) ==
        doctest::Approx(-1));
  CHECK(bench.loss("{type: recurrent, subtype: pix, criterion: l1, real: x, fake: y, "
                   "recurrent_weights: [1, 10]}") == doctest::Approx(1.5 + 10 * 2));
  CHECK(
      bench.loss("{type: for_element, subtype: pix, criterion: l1, real: x, fake: y, index: 1}") ==
      doctest::Approx(2));
  bench.set("labels", at::tensor({1, 0}, at::kLong));
  CHECK(bench.loss("{type: cross_entropy, logits: x, labels: labels}") ==
        doctest::Approx((std::log1p(std::exp(-1.0)) + std::log1p(std::exp(1.0))) / 2));
}

at::Tensor halved_l1(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs() / 2; }

STEPOP_REGISTER_LOSS_FUNCTION(halved_l1, halved_l1, {"Half of l1.", {}});

TEST_CASE("a registered loss function is a criterion") {
  Workbench bench;
  bench.set("x", at::tensor({1.0, 2.0}, at::kFloat));
  bench.set("y", at::tensor({2.0, 5.0}, at::kFloat));
  CHECK(bench.loss("{type: pix, criterion: halved_l1, real: x, fake: y}") == doctest::Approx(1));
  CHECK(message_of([&] { bench.loss("{type: pix, criterion: l3, real: x, fake: y}"); })
            .find("expected l1, l2, cosine or a loss function (`stepop list \"loss function\"`), "
                  "found \"l3\"") != std::string::npos);
}

TEST_CASE("sr_pix weights details, and is l2 in the mean") {
  Workbench bench;
  at::manual_seed(1);
  const at::Tensor real = at::rand({2, 3, 8, 8});
  bench.set("real", real);
  bench.set("fake", real + at::randn({2, 3, 8, 8}) * 0.1);
  const double l2 = bench.loss("{type: pix, criterion: l2, real: real, fake: fake}");
  CHECK(bench.loss("{type: sr_pix, real: real, fake: fake, scale: 2}") == doctest::Approx(l2));
}

TEST_CASE("losses of GANs are what their formulas say") {
  Workbench bench;
  bench.set("real", at::ones({4, 3, 8, 8}) * 0.3);
  bench.set("fake", at::ones({4, 3, 8, 8}) * -0.2);
  auto d = std::dynamic_pointer_cast<Network>(bench.run().session.context().networks.get("d"));
  const double r = d->forward(at::ones({1, 3, 8, 8}) * 0.3).item<double>();
  const double f = d->forward(at::ones({1, 3, 8, 8}) * -0.2).item<double>();
  const auto bce = [](double logit, double target) {
    return std::log1p(std::exp(-std::abs(logit))) + std::max(logit, 0.0) - logit * target;
  };
  const auto generator = [&](const std::string& type) {
    return bench.loss("{type: generator_gan, gan_type: " + type +
                      ", discriminator: d, real: real, fake: fake}");
  };
  const auto discriminator = [&](const std::string& type) {
    return bench.loss("{type: discriminator_gan, gan_type: " + type + ", real: real, fake: fake}");
  };
  CHECK(generator("gan") == doctest::Approx(bce(f, 1)));
  CHECK(generator("ragan") == doctest::Approx((bce(r - f, 0) + bce(f - r, 1)) / 2));
  CHECK(generator("lsgan") == doctest::Approx((f - 1) * (f - 1)));
  CHECK(generator("hinge") == doctest::Approx(-f));
  CHECK(discriminator("gan") == doctest::Approx(bce(r, 1) + bce(f, 0)));
  CHECK(discriminator("ragan") == doctest::Approx(bce(r - f, 1) + bce(f - r, 0)));
  CHECK(discriminator("lsgan") == doctest::Approx((r - 1) * (r - 1) + f * f));
  CHECK(discriminator("hinge") == doctest::Approx(std::max(0.0, 1 - r) + std::max(0.0, 1 + f)));
  CHECK(discriminator("max_spread") ==
        doctest::Approx(2 * (2 / (1 + std::exp(-1 / std::abs(r - f))) - 1)).epsilon(1e-4));
  CHECK(message_of([&] { generator("gam"); })
            .find("gan_type: expected gan, pixgan, ragan, max_spread, lsgan or hinge, found "
                  "\"gam\"") != std::string::npos);
}

TEST_CASE("gradient penalties are those of the gradient by the real examples") {
  Workbench bench;
  at::manual_seed(2);
  const at::Tensor real = at::rand({3, 3, 8, 8});
  bench.set("real", real);
  bench.set("fake", at::rand({3, 3, 8, 8}));
  auto d = std::dynamic_pointer_cast<Network>(bench.run().session.context().networks.get("d"));
  at::Tensor leaf = real.detach().clone().requires_grad_();
  d->forward(leaf).sum().backward();
  const at::Tensor norms = leaf.grad().flatten(1).norm(2, 1);
  const std::string base = "{type: discriminator_gan, gan_type: gan, real: real, fake: fake";
  const double plain = bench.loss(base + "}");
  CHECK(bench.loss(base + ", gradient_penalty: true}") - plain ==
        doctest::Approx(10 * (norms - 1).square().mean().item<double>()).epsilon(1e-4));
  CHECK(bench.loss(base + ", gradient_penalty: r1, gradient_penalty_weight: 4}") - plain ==
        doctest::Approx(2 * norms.square().mean().item<double>()).epsilon(1e-3));
  // The penalty trains the discriminator.
  d->zero_grad();
  bench.loss_tensor(base + ", gradient_penalty: true, gradient_penalty_weight: 1000}").backward();
  CHECK(d->parameters().front().grad().abs().sum().item<double>() > 0);
  CHECK(bench.at("fake_real_gp_structure_img").sizes() == real.sizes());
}

/// The generator of a workbench, whose statistics stand still.
std::shared_ptr<Network> still_generator(Workbench& bench) {
  auto generator =
      std::dynamic_pointer_cast<Network>(bench.run().session.context().networks.get("a"));
  generator->eval();
  return generator;
}

double l1(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().mean().item<double>(); }

/// A loss that draws one of several cases gives each of `expected`, and nothing else.
template <class Draw>
void check_drawn(const std::vector<double>& expected, const Draw& draw) {
  std::vector<int> seen(expected.size());
  for (int i = 0; i < 80; ++i) {
    const double loss = draw();
    CAPTURE(loss);
    bool is_known = false;
    for (size_t k = 0; k < expected.size(); ++k) {
      if (std::abs(loss - expected[k]) > 1e-5 * expected[k]) continue;
      ++seen[k];
      is_known = true;
    }
    CHECK(is_known);
  }
  for (size_t k = 0; k < seen.size(); ++k) {
    CAPTURE(k);
    CHECK(seen[k] > 0);
  }
}

TEST_CASE("geometric compares with what is made of a mirrored or turned image, turned back") {
  Workbench bench;
  const auto generator = still_generator(bench);
  at::manual_seed(3);
  const at::Tensor x = at::rand({2, 3, 8, 8});
  const at::Tensor made = generator->forward(x).detach();
  std::vector<double> expected;
  for (const int64_t dim : {2, 3}) {
    expected.push_back(l1(made, at::flip(generator->forward(at::flip(x, {dim})), {dim})));
  }
  for (const int64_t turns : {1, 2, 3}) {
    const at::Tensor turned = generator->forward(at::rot90(x, turns, {2, 3}));
    expected.push_back(l1(made, at::rot90(turned, -turns, {2, 3})));
  }
  bench.set("x", x);
  bench.set("made", made);
  check_drawn(expected, [&] {
    return bench.loss("{type: geometric, generator: a, criterion: l1, real: made, fake: x}");
  });
  const std::string detached =
      "{type: geometric, generator: a, criterion: l1, real: made, fake: [x], detach_fake: true}";
  CHECK_FALSE(bench.loss_tensor(detached).requires_grad());
}

TEST_CASE("translational compares two corners in the region that both show") {
  Workbench bench;
  const auto generator = still_generator(bench);
  at::manual_seed(4);
  bench.set("whole", at::rand({2, 3, 12, 12}));
  bench.inject("{type: image_patch, in: whole, out: x, patch_size: 8}");
  const std::vector<std::string> corners = {"x", "x_top_right", "x_bottom_left", "x_bottom_right"};
  std::vector<at::Tensor> images;
  for (const auto& corner : corners) images.push_back(bench.at(corner));
  for (size_t i = 0; i < corners.size(); ++i) bench.set(corners[i], images[i]);
  // Where each lies in the whole, of 24 by 24; all four show its middle.
  const auto middle = [&](size_t corner) {
    at::Tensor whole = at::zeros({2, 3, 24, 24});
    whole.narrow(2, corner < 2 ? 0 : 8, 16)
        .narrow(3, corner % 2 == 0 ? 0 : 8, 16)
        .copy_(generator->forward(images[corner]).detach());
    return whole.narrow(2, 8, 8).narrow(3, 8, 8);
  };
  bench.set("made", generator->forward(images[0]).detach());
  check_drawn({l1(middle(0), middle(1)), l1(middle(0), middle(2)), l1(middle(0), middle(3))}, [&] {
    return bench.loss(
        "{type: translational, generator: a, criterion: l1, real: made, fake: x, patch_size: 16, "
        "overlap: 8}");
  });
}

TEST_CASE("recursive feeds what is made in again, made smaller") {
  Workbench bench;
  const auto generator = still_generator(bench);
  at::manual_seed(5);
  const at::Tensor x = at::rand({2, 3, 8, 8});
  const at::Tensor made = generator->forward(x).detach();
  const auto smaller = [](const at::Tensor& image) {
    return image.slice(2, 0, {}, 2).slice(3, 0, {}, 2);
  };
  const at::Tensor again = generator->forward(smaller(generator->forward(smaller(made))));
  bench.set("x", x);
  bench.set("made", made);
  CHECK(bench.loss("{type: recursive, generator: a, criterion: l2, real: made, fake: [x], "
                   "recursive_depth: 2, downsample_factor: 0.5}") ==
        doctest::Approx((made - again).square().mean().item<double>()));
}

}  // namespace extensible_losses_test
}  // namespace stepop
