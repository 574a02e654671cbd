// FID and KID against pytorch-fid's and torch-fidelity's formulas: tests/data/extensible.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "iterators/metrics/feature_distances.h"
#include "runtime/core/formats/safetensors.h"
#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"
#include "tests/places.h"

namespace stepop {
namespace feature_distances_test {

using namespace metrics;

const State& stored() {
  static const State kAll =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/extensible/metrics.safetensors").tensors;
  return kAll;
}

double number(const std::string& name) { return stored().at(name).item<double>(); }

ReadRows reader(const at::Tensor& features) {
  return [features](int64_t first, int64_t count) { return features.narrow(0, first, count); };
}

FeatureMoments moments(const at::Tensor& features, int64_t block = 7) {
  return feature_moments(features.size(0), block, reader(features));
}

double fid(const at::Tensor& a, const at::Tensor& b) {
  return frechet_distance(moments(a), moments(b));
}

TEST_CASE("FID is pytorch-fid's, in whatever blocks the features are read") {
  const at::Tensor& a = stored().at("many_a");
  const at::Tensor& b = stored().at("many_b");
  CHECK(fid(a, b) == doctest::Approx(number("many_fid")).epsilon(1e-10));
  CHECK(frechet_distance(moments(a, 200), moments(b, 1)) ==
        doctest::Approx(number("many_fid")).epsilon(1e-10));
}

TEST_CASE("FID of less examples than features loses no digits") {
  CHECK(fid(stored().at("few_a"), stored().at("few_b")) ==
        doctest::Approx(number("few_fid")).epsilon(1e-10));
}

TEST_CASE("FID in closed form: the same features, a shift, constant features") {
  const at::Tensor a = at::randn({50, 8});
  CHECK(fid(a, a) < 1e-9);
  CHECK(fid(a, a + 2) == doctest::Approx(4 * 8).epsilon(1e-5));
  // A Gaussian and a point: the distance of the means and the trace.
  const at::Tensor point = at::ones({4, 8});
  const FeatureMoments of_a = moments(a);
  const double expected = (of_a.mean - 1).square().sum().item<double>() +
                          of_a.covariance.diagonal().sum().item<double>();
  CHECK(frechet_distance(of_a, moments(point)) == doctest::Approx(expected));
  // Diagonal covariances: the squares of the differences of the deviations.
  FeatureMoments one{at::zeros({3}, at::kDouble), at::eye(3, at::kDouble) * 4};
  FeatureMoments other{at::zeros({3}, at::kDouble), at::eye(3, at::kDouble) * 9};
  CHECK(frechet_distance(one, other) == doctest::Approx(3));
}

TEST_CASE("KID is torch-fidelity's estimate") {
  CHECK(squared_mmd(stored().at("many_a"), stored().at("many_b")) ==
        doctest::Approx(number("many_kid")).epsilon(1e-10));
  CHECK(squared_mmd(stored().at("few_a"), stored().at("few_b")) ==
        doctest::Approx(number("few_kid")).epsilon(1e-10));
}

TEST_CASE("KID is the mean over subsets, which the seed chooses") {
  const at::Tensor& a = stored().at("many_a");
  const at::Tensor& b = stored().at("many_b");
  const auto kid = [&](KernelDistanceOptions options) {
    return kernel_distance(a.size(0), reader(a), reader(b), options);
  };
  // A subset of all is all.
  const KernelDistance whole = kid({.subsets = 3, .subset_size = 200, .seed = 1});
  CHECK(whole.mean == doctest::Approx(number("many_kid")).epsilon(1e-10));
  CHECK(whole.deviation < 1e-9);
  const KernelDistance some = kid({.subsets = 50, .subset_size = 60, .seed = 1});
  CHECK(some.mean == doctest::Approx(number("many_kid")).epsilon(0.1));
  CHECK(some.deviation > 1);
  CHECK(some.mean == kid({.subsets = 50, .subset_size = 60, .seed = 1}).mean);
  CHECK(some.mean != kid({.subsets = 50, .subset_size = 60, .seed = 2}).mean);
  CHECK(message_of([&] { kid({.subsets = 1, .subset_size = 201, .seed = 0}); }) ==
        "a subset has 201 examples, and there are 200: give a smaller subset_size");
}

TEST_CASE("features that have no distance are named") {
  CHECK(message_of([] {
          moments(at::zeros({1, 3}));
        }) == "the covariance of features needs 2 examples or more, found 1");
  CHECK(message_of([] {
          moments(at::zeros({4, 3, 1}));
        }) == "expected features [N, D], found float32 [4, 3, 1]");
  CHECK(message_of([] {
          moments(at::full({4, 3}, std::numeric_limits<double>::infinity()));
        }) == "features are NaN or infinite");
  CHECK(message_of([] {
          fid(at::zeros({4, 3}), at::zeros({4, 2}));
        }) == "features of 3 and of 2 numbers cannot be compared");
  CHECK(message_of([] {
          squared_mmd(at::zeros({4, 3}), at::zeros({1, 3}));
        }).starts_with("expected two sets of 2 or more vectors of one length, found "));
}

TEST_CASE("the callbacks fid and kid take features of any evaluation's outputs") {
  const EvalOutputs outputs{
      .outputs = {{"real_features", stored().at("many_a")}, {"made", stored().at("many_b")}}};
  CHECK(look("fid", outputs, "{fake: made}")->value("fid") ==
        doctest::Approx(number("many_fid")).epsilon(1e-10));
  const auto kid = look("kid", outputs, "{fake: made, subset_size: 200, subsets: 2}");
  CHECK(kid->value("kid") == doctest::Approx(number("many_kid")).epsilon(1e-10));
  CHECK(kid->value("deviation") < 1e-9);
  CHECK(message_of([&] { look("fid", outputs); }) ==
        "no \"fake_features\" in FILE; the file has: outputs/made, outputs/real_features; name "
        "another key by \"fake\"");
  CHECK(message_of([&] {
          look("kid", outputs, "{fake: made, subsets: 0}");
        }).find("subsets: expected 1 or more, found 0") != std::string::npos);
  const EvalOutputs images{.outputs = {{"real_features", at::zeros({2, 3, 4})},
                                       {"fake_features", at::zeros({2, 3, 4})}}};
  CHECK(message_of([&] { look("fid", images); }) ==
        "outputs/real_features must hold features, a vector an example; found float32 [3, 4]");
  at::Tensor broken = stored().at("few_a").clone();
  broken[3][1] = std::numeric_limits<float>::quiet_NaN();
  const EvalOutputs with_nan{
      .outputs = {{"real_features", stored().at("few_b")}, {"fake_features", broken}}};
  CHECK(message_of([&] { look("fid", with_nan); }) ==
        "outputs/fake_features has a NaN in row 3 (example 3 of the dataset)");
}

}  // namespace feature_distances_test
}  // namespace stepop
