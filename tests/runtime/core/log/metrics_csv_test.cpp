#include "runtime/core/log/metrics_csv.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/scratch_folder.h"

namespace stepop {
namespace metrics_csv_test {

const std::string kHead = "step,epoch,samples,time,name,value\n";

void write(const ScratchFolder& folder, int64_t first_step, int64_t step, double value) {
  MetricsCsv csv;
  csv.begin({.folder = folder.path(), .first_step = first_step});
  csv.write({.step = step, .epoch = 0.5, .samples = 64, .seconds = 1.25},
            {.scalars = {{"train/log_op/loss", value}, {"a, b", 2}}});
  csv.write({.step = step}, {});
}

TEST_CASE("each number is a line") {
  const ScratchFolder folder;
  write(folder, 0, 1, std::numeric_limits<double>::quiet_NaN());
  CHECK(read_bytes(folder / "metrics.csv") ==
        kHead + "1,0.500000,64,1.250,train/log_op/loss,nan\n1,0.500000,64,1.250,\"a, b\",2\n");
}

TEST_CASE("a start goes on behind the lines of the steps before it") {
  const ScratchFolder folder;
  folder.write("metrics.csv", kHead + "1,0,0,0,a,1\n5,0,0,0,a,2\nnonsense\n4,0,0,0,a,3\n4,0,0,");
  write(folder, 5, 6, 0.1);
  CHECK(read_bytes(folder / "metrics.csv") ==
        kHead +
            "1,0,0,0,a,1\n4,0,0,0,a,3\n"
            "6,0.500000,64,1.250,train/log_op/loss,0.1\n6,0.500000,64,1.250,\"a, b\",2\n");
  write(folder, 0, 1, 3);
  CHECK(read_bytes(folder / "metrics.csv").find("loss,0.1") == std::string::npos);
}

}  // namespace metrics_csv_test
}  // namespace stepop
