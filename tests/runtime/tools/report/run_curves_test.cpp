#include "runtime/tools/report/run_curves.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/scratch_folder.h"

namespace stepop {
namespace run_curves_test {

TEST_CASE("a short curve keeps every point, of one step the last one") {
  ScalarCurve curve;
  for (const auto& [step, value] : {std::pair{1, 5.0}, {3, 4.0}, {2, 9.0}, {3, 7.0}}) {
    curve.add(step, value);
  }
  const auto points = curve.points();
  REQUIRE(points.size() == 3);
  CHECK(points[1].step == 2);
  CHECK(points[2].value == 7.0);
  CHECK(!curve.is_thinned());
  CHECK(curve.count() == 4);
}

TEST_CASE("a long curve keeps each spike, its first and last step roughly, and its order") {
  ScalarCurve curve;
  for (int64_t step = 0; step < 1'000'000; ++step) {
    curve.add(step, step == 123'456   ? 99
                    : step == 777'777 ? -99
                                      : std::sin(static_cast<double>(step) * 1e-5));
  }
  curve.thin(1000);
  CHECK(curve.is_thinned());
  CHECK(curve.count() == 1'000'000);
  const auto points = curve.points();
  CHECK(points.size() <= 2000);
  CHECK(points.size() > 800);
  bool has_high = false;
  bool has_low = false;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i > 0) CHECK(points[i].step > points[i - 1].step);
    has_high = has_high || (points[i].step == 123'456 && points[i].value == 99);
    has_low = has_low || (points[i].step == 777'777 && points[i].value == -99);
  }
  CHECK(has_high);
  CHECK(has_low);
  CHECK(points.front().step < 2000);
  CHECK(points.back().step > 998'000);
}

TEST_CASE("the means of a thinned curve are those of its buckets") {
  ScalarCurve curve;
  for (int64_t step = 0; step < 1024; ++step) curve.add(step, step % 2 == 0 ? 3 : 5);
  curve.add(1024, std::nan(""));
  curve.thin(16);
  const auto means = curve.means();
  CHECK(means.size() == 8);
  for (const auto& mean : means) CHECK(mean.value == doctest::Approx(4));
  CHECK(means[0].step == 64);
}

TEST_CASE("gaps stay, in short and in thinned curves") {
  ScalarCurve curve;
  for (int64_t step = 0; step < 100; ++step) {
    curve.add(step, step >= 40 && step < 60 ? std::nan("") : 1.0);
  }
  CHECK(std::isnan(curve.points()[50].value));
  curve.thin(10);
  int64_t gaps = 0;
  for (const auto& point : curve.points()) {
    if (!std::isnan(point.value)) continue;
    ++gaps;
    CHECK(point.step >= 40);
    CHECK(point.step < 60);
  }
  CHECK(gaps > 0);
  ScalarCurve all_nan;
  all_nan.add(3, INFINITY);
  REQUIRE(all_nan.points().size() == 1);
}

TEST_CASE("curves of a file tell the last, the lowest and the highest, and what is broken") {
  const ScratchFolder folder;
  const std::string path =
      folder.write("metrics.jsonl",
                   "{\"step\":1,\"epoch\":0.5,\"samples\":64,\"time\":2,\"train/log_op/loss\":3}\n"
                   "{\"step\":2,\"epoch\":1,\"samples\":128,\"time\":4,\"train/log_op/loss\":1,"
                   "\"validation/eval_op/loss\":2}\n"
                   "broken\n"
                   "{\"step\":3,\"epoch\":1.5,\"samples\":192,\"time\":6,"
                   "\"train/log_op/loss\":\"NaN\"}\n");
  const RunCurves curves = read_curves(path);
  const ScalarSummary& loss = curves.scalars.at("train/log_op/loss").summary;
  CHECK(std::isnan(loss.last->value));
  CHECK(loss.last->step == 3);
  CHECK(loss.min->step == 2);
  CHECK(loss.max->step == 1);
  CHECK(curves.samples == 192);
  CHECK(curves.seconds.points().back().value == 6);
  CHECK(curves.broken_lines == 1);
  REQUIRE(curves.evaluations.size() == 1);
  CHECK(curves.evaluations.at(2).at("validation/eval_op/loss") == 2);
  CHECK(read_curves(folder / "none").scalars.empty());
}

}  // namespace run_curves_test
}  // namespace stepop
