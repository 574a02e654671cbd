#include "runtime/tools/trial/op_measurements.h"

#include <ATen/ops/empty.h>
#include <doctest/doctest.h>

#include <stdexcept>

#include "tests/python.h"

namespace stepop {
namespace op_measurements_test {

TEST_CASE("a part has the memory that it needed beyond what was there, and what it left") {
  TensorMemory memory;
  OpMeasurements measurements(memory, c10::kCPU);
  at::Tensor kept;
  int rounds = 0;
  while (measurements.begin_round()) {
    ++rounds;
    kept = measurements.measure("make", [] {
      const at::Tensor scratch = at::empty({3000}, at::kByte);
      return at::empty({2000}, at::kByte);
    });
    measurements.measure("use", [&] { const at::Tensor scratch = at::empty({500}, at::kByte); });
    measurements.measure("free", [&] { kept.reset(); });
  }
  CHECK(rounds == 5);
  CHECK(run_python(R"(
import re, sys
rows = sys.argv[1].splitlines()
print(rows[0])
for row in rows[1:]: print(re.sub(r' *[0-9.]+ ms', ' T ms', row))
)",
                   {measurements.table()}) ==
        "op    median of 5  memory at most  memory left\n"
        "make T ms          5.0 kB       2.0 kB\n"
        "use T ms           500 B          0 B\n"
        "free T ms             0 B      -2.0 kB\n");
}

TEST_CASE("a part that throws is measured, and its exception goes on") {
  TensorMemory memory;
  OpMeasurements measurements(memory, c10::kCPU);
  REQUIRE(measurements.begin_round());
  CHECK_THROWS_AS(measurements.measure("fails", []() -> int { throw std::logic_error("no"); }),
                  std::logic_error);
  CHECK(measurements.table().find("\nfails ") != std::string::npos);
}

}  // namespace op_measurements_test
}  // namespace stepop
