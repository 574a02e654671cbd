#include "runtime/train/loop/data_wait.h"

#include <doctest/doctest.h>

#include <chrono>

namespace stepop {
namespace data_wait_test {

using std::chrono::seconds;

TEST_CASE("a training that waits for its data for most of a minute says so once") {
  const auto begin = DataWait::Clock::now();
  DataWait wait(4, begin);
  wait.add(seconds(59));
  CHECK(wait.look(begin + seconds(59)) == "");  // a minute is not over
  CHECK(wait.look(begin + seconds(60)) ==
        "the training waits for its data: 98 % of the last minute. With a larger n_data_processes "
        "(now 4) more threads load at once; --profile shows where the time goes");
  wait.add(seconds(60));
  CHECK(wait.look(begin + seconds(120)) == "");
}

TEST_CASE("a training that waited for its data in an earlier minute alone says nothing") {
  const auto begin = DataWait::Clock::now();
  DataWait wait(0, begin);
  wait.add(seconds(30));
  CHECK(wait.look(begin + seconds(60)) == "");
  wait.add(seconds(20));
  CHECK(wait.look(begin + seconds(120)) == "");
  wait.add(seconds(40));
  CHECK(wait.look(begin + seconds(180)).find("67 %") != std::string::npos);
}

}  // namespace data_wait_test
}  // namespace stepop
