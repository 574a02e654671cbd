#include "runtime/train/checkpoint/checkpoint_folder.h"

#include <ATen/ops/arange.h>
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <filesystem>
#include <limits>

#include "runtime/core/formats/safetensors.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace checkpoint_folder_test {

namespace fs = std::filesystem;
using Steps = std::vector<int64_t>;
using Texts = std::vector<std::string>;

std::string save(const ScratchFolder& folder, int64_t step) {
  Checkpoint checkpoint;
  checkpoint.tensors = {{"model.w", at::arange(step)}};
  checkpoint.progress.global_step = step;
  return save_checkpoint(folder.path(), checkpoint);
}

void cut(const std::string& path) { fs::resize_file(path, fs::file_size(path) - 1); }

std::string target(const ScratchFolder& folder, const std::string& link) {
  return fs::read_symlink(folder / link).string();
}

Retention by_accuracy(int64_t keep_last = 0) {
  Retention retention;
  retention.keep_last = keep_last;
  retention.keep_best = 1;
  retention.metric = "accuracy";
  return retention;
}

TEST_CASE("the newest checkpoint that is whole is found, with a warning for each that is not") {
  const ScratchFolder scratch;
  const CheckpointFolder folder(scratch.path());
  Texts warnings;
  CHECK(folder.newest_whole(warnings) == std::nullopt);
  CHECK(CheckpointFolder(scratch / "none").newest_whole(warnings) == std::nullopt);
  for (const int64_t step : {100, 90, 8}) save(scratch, step);
  CHECK(folder.newest_whole(warnings) == scratch / "model-100.safetensors");
  CHECK(warnings.empty());

  cut(scratch / "model-100.safetensors");
  scratch.write("model-90.safetensors", "");
  CHECK(folder.newest_whole(warnings) == scratch / "model-8.safetensors");
  CHECK(warnings == Texts{scratch / "model-100.safetensors: damaged: its tensors take 800 bytes, "
                                    "only 799 are there: the file is cut short; using "
                                    "model-8.safetensors instead",
                          scratch / "model-90.safetensors: damaged: it has 0 bytes, too few for a "
                                    "safetensors file; using model-8.safetensors instead"});
}

TEST_CASE("a checkpoint that cannot be read is not skipped: it may be whole") {
  const ScratchFolder scratch;
  save(scratch, 8);
  const std::string path = scratch / "model-9.safetensors";
  fs::create_symlink("model-9.safetensors", path);
  const std::string reason = path + ": cannot open: Too many levels of symbolic links";
  CHECK(message_of([&] { verify_checkpoint(path); }) == reason);
  Texts warnings;
  CHECK(
      message_of([&] { CheckpointFolder(scratch.path()).newest_whole(warnings); }) ==
      reason +
          "; it may be whole, so no older one is used. To resume from another one, give its step: "
          "-c STEP");
  CHECK(warnings.empty());
}

TEST_CASE("a process without a free file handle does not take every checkpoint for damaged") {
  const ScratchFolder scratch;
  const std::string path = save(scratch, 8);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const std::string message = message_of([&] { verify_checkpoint(path); });
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(message == path + ": cannot open: Too many open files");
}

TEST_CASE("when every checkpoint is damaged, each is named with what is wrong") {
  const ScratchFolder scratch;
  cut(save(scratch, 9));
  scratch.write("model-10.safetensors", "");
  Texts warnings;
  CHECK(
      message_of([&] { CheckpointFolder(scratch.path()).newest_whole(warnings); }) ==
      scratch.path() +
          ": every checkpoint is damaged; to start again at step 0, move them to another folder:\n"
          "  model-10.safetensors: damaged: it has 0 bytes, too few for a safetensors file\n"
          "  model-9.safetensors: damaged: its tensors take 72 bytes, only 71 are there: the "
          "file is cut short");
  CHECK(warnings.empty());
}

TEST_CASE("a checkpoint is found by its step, as the latest and as the best") {
  const ScratchFolder scratch;
  const CheckpointFolder folder(scratch.path());
  for (const int64_t step : {5, 70, 700}) save(scratch, step);
  CHECK(folder.find("70") == scratch / "model-70.safetensors");
  CHECK(folder.find("latest") == scratch / "model-700.safetensors");
  CHECK(message_of([&] { folder.find("best"); }) ==
        "-c best: " + scratch.path() +
            ": no checkpoint is marked as the best, which needs checkpoints/metric in the config "
            "and an evaluation; there are checkpoints of the steps 5, 70, 700");
  folder.update_links_and_sweep({{5, 0.25}}, by_accuracy());
  CHECK(folder.find("best") == scratch / "model-5.safetensors");
  fs::remove(scratch / "model-5.safetensors");
  CHECK(message_of([&] { folder.find("best"); }).starts_with("-c best: "));
  CHECK(message_of([&] { folder.find("6"); }) ==
        "-c: " + (scratch /
                  "model-6.safetensors: no such checkpoint; there are checkpoints of the steps "
                  "70, 700"));
  for (const char* path : {"a/model-70.safetensors", "", "-7", "best.safetensors"}) {
    CHECK(folder.find(path) == std::nullopt);
  }
}

TEST_CASE("in a run without checkpoints none is found") {
  const ScratchFolder scratch;
  const CheckpointFolder folder(scratch.path());
  CHECK(message_of([&] { folder.find("6"); }) ==
        "-c: " + (scratch / "model-6.safetensors: no such checkpoint; there are none"));
  CHECK(message_of([&] { folder.find("latest"); }) ==
        "-c latest: " + scratch.path() + ": has no checkpoints");
  CHECK(folder.update_links_and_sweep({}, by_accuracy(1)).empty());
  CHECK(scratch.names().empty());
}

TEST_CASE("links are relative, follow the values, and open as checkpoints") {
  const ScratchFolder scratch;
  const CheckpointFolder folder(scratch.path());
  save(scratch, 1);
  CHECK(folder.latest() == std::nullopt);
  folder.update_links_and_sweep({}, by_accuracy());
  CHECK(folder.latest() == 1);
  CHECK(folder.best() == std::nullopt);
  CHECK(target(scratch, "latest.safetensors") == "model-1.safetensors");

  save(scratch, 2);
  scratch.write("latest.safetensors.tmp", "of a killed process");
  folder.update_links_and_sweep({{1, 0.5}}, by_accuracy());
  CHECK(folder.latest() == 2);
  CHECK(folder.best() == 1);
  folder.update_links_and_sweep({{1, 0.5}, {2, 0.75}}, by_accuracy());
  CHECK(folder.best() == 2);
  folder.update_links_and_sweep({{1, 0.5}, {2, std::numeric_limits<double>::quiet_NaN()}},
                                by_accuracy());
  CHECK(folder.best() == 1);
  folder.update_links_and_sweep({}, by_accuracy());
  CHECK(folder.best() == 1);
  CHECK(load_checkpoint(scratch / "latest.safetensors").progress.global_step == 2);
  CHECK(scratch.names() == Texts{"best.safetensors", "latest.safetensors", "model-1.safetensors",
                                 "model-2.safetensors"});
}

TEST_CASE("a link to elsewhere is not followed, and one to nothing is no checkpoint") {
  const ScratchFolder scratch;
  const CheckpointFolder folder(scratch.path());
  save(scratch, 1);
  for (const char* target : {"../model-1.safetensors", "model-7.safetensors", "notes"}) {
    fs::create_symlink(target, scratch / "best.safetensors");
    CHECK(folder.best() == std::nullopt);
    fs::remove(scratch / "best.safetensors");
  }
}

TEST_CASE("what retention drops goes, and only that") {
  const ScratchFolder scratch;
  const CheckpointFolder folder(scratch.path());
  const MetricByStep values = {{10, 0.5}, {20, 0.9}, {30, 0.7}};
  for (const int64_t step : {10, 20, 30, 40, 50}) save(scratch, step);
  scratch.write("notes.txt", "");
  CHECK(folder.update_links_and_sweep(values, by_accuracy()).empty());
  CHECK(folder.update_links_and_sweep(values, by_accuracy(2)) == Steps{10, 30});
  CHECK(folder.steps() == Steps{20, 40, 50});
  CHECK(folder.best() == 20);
  CHECK(folder.latest() == 50);
  CHECK(fs::exists(scratch / "notes.txt"));
  // Without a metric the former best stays: the link says so.
  Retention last;
  last.keep_last = 1;
  CHECK(folder.update_links_and_sweep({}, last) == Steps{40});
  CHECK(folder.steps() == Steps{20, 50});
}

}  // namespace checkpoint_folder_test
}  // namespace stepop
