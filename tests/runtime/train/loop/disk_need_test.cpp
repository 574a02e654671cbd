#include "runtime/train/loop/disk_need.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/test_run.h"

namespace stepop {
namespace disk_need_test {

/// A training of 3,000 epochs of 4 steps.
Settings settings_of(const std::string& more) {
  return Settings(
      test_config("num_epochs: 3000\nbatch_size: 8\ndatasets: {validation: {class: Idx}}\n" + more),
      4,
      /*train=*/true, /*debug=*/false);
}

DiskNeed noted(const Settings& settings, int64_t checkpoint, int64_t outputs) {
  DiskNeed need(settings);
  CHECK_FALSE(need.is_ready());
  need.note_checkpoint(checkpoint);
  CHECK_FALSE(need.is_ready());
  need.note_evaluation("", outputs);
  CHECK(need.is_ready());
  return need;
}

TEST_CASE("what checkpoints and evaluations will need is said where the disk is small") {
  const Settings settings = settings_of("");
  DiskNeed need = noted(settings, 10'000'000, 5'000'000);
  CHECK(need.look(400, 1e11) ==
        "the disk has 100.0 GB left, and the rest of this training will write about 43.5 GB: 2,900 "
        "checkpoints of 10.0 MB and 2,900 evaluations of 5.0 MB; checkpoints: {keep_last: 3} keeps "
        "the newest three, and eval_hook: {clean_after_callbacks: true} keeps no outputs");
  CHECK_FALSE(need.is_ready());  // said once
  CHECK(noted(settings, 10'000'000, 5'000'000).look(400, 1e12) == "");
}

TEST_CASE("checkpoints that are removed, and outputs that are, need little of a disk") {
  const Settings settings = settings_of("checkpoints: {keep_last: 3}\n");
  CHECK(noted(settings, 10'000'000, 0).look(400, 1e9) == "");
  CHECK(noted(settings, 10'000'000, 5'000'000).look(400, 1e10) ==
        "the disk has 10.0 GB left, and the rest of this training will write about 14.5 GB: 3 "
        "checkpoints of 10.0 MB and 2,900 evaluations of 5.0 MB; eval_hook: "
        "{clean_after_callbacks: true} keeps no outputs");
}

TEST_CASE("the free bytes of a folder's disk are known") {
  CHECK(free_bytes_at("/tmp") > 0);
  CHECK(free_bytes_at("/no/such/folder") > 1e300);
}

}  // namespace disk_need_test
}  // namespace stepop
