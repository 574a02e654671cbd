#include "runtime/train/checkpoint/checkpoint.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <filesystem>

#include "runtime/core/formats/safetensors.h"
#include "tests/message_of.h"
#include "tests/runtime/train/checkpoint/examples.h"
#include "tests/same_state.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace checkpoint_test {

TEST_CASE("a checkpoint comes back with every number of the run") {
  const ScratchFolder folder;
  Checkpoint saved;
  saved.tensors = {{"model.w", at::arange(3)}};
  saved.config = "a: 1\n";
  saved.progress.global_step = 700;
  saved.progress.epoch = 30;
  saved.progress.batch = 10;
  saved.progress.train_examples = 1442;
  saved.progress.samples_seen = 44800;
  saved.progress.seconds = 12.625;
  saved.progress.batches_taken = {{"validation", 5}, {"extra split", 6}};
  saved.progress.evaluation_folder = "eval/x/700";
  const std::string path = save_checkpoint(folder.path(), saved);
  CHECK(path == folder.path("model-700.safetensors"));

  const Checkpoint loaded = load_checkpoint(path);
  CHECK(values_of<int64_t>(loaded.tensors.at("model.w")) == std::vector<int64_t>{0, 1, 2});
  CHECK(loaded.config == saved.config);
  CHECK(loaded.progress.to_json() == saved.progress.to_json());
  CHECK(loaded.progress.global_step == 700);
  CHECK(loaded.progress.epoch == 30);
  CHECK(loaded.progress.batch == 10);
  CHECK(loaded.progress.train_examples == 1442);
  CHECK(loaded.progress.samples_seen == 44800);
  CHECK(loaded.progress.seconds == 12.625);
  CHECK(loaded.progress.batches_taken == saved.progress.batches_taken);
  CHECK(loaded.progress.evaluation_folder == "eval/x/700");
}

TEST_CASE("a checkpoint from before the size of the training dataset was kept has it as unknown") {
  Progress progress;
  progress.train_examples = 7;
  std::string text = progress.to_json();
  const std::string entry = "\"train_examples\":7,";
  REQUIRE(text.find(entry) != std::string::npos);
  CHECK(Progress::from_json(text).train_examples == 7);
  text.erase(text.find(entry), entry.size());
  CHECK(Progress::from_json(text).train_examples == 0);
}

TEST_CASE("a folder of an evaluation that lies elsewhere is refused") {
  Progress progress;
  for (const char* good : {"", "eval/2026-11-21T10-00-00_a/4", "eval/x/0"}) {
    progress.evaluation_folder = good;
    CHECK(Progress::from_json(progress.to_json()).evaluation_folder == good);
  }
  for (const char* bad : {"../../evil/4", "eval/../4", "eval/4", "/tmp/4", "eval/a/b", "eval//4",
                          "eval/a/4/..", "eval/./4", "x/a/4"}) {
    CAPTURE(bad);
    progress.evaluation_folder = bad;
    CHECK(message_of([&] {
            Progress::from_json(progress.to_json());
          }).find("expected the folder of an evaluation") != std::string::npos);
  }
}

TEST_CASE("an epoch is told with its fraction, when its length is known") {
  Progress progress;
  progress.epoch = 30;
  progress.batch = 10;
  CHECK(progress.fractional_epoch() == 30);
  progress.batches_per_epoch = 25;
  CHECK(progress.fractional_epoch() == 30.4);
}

TEST_CASE("the steps of a folder are told in order, whatever else lies there") {
  const ScratchFolder folder;
  for (const int64_t step : {100, 20, 3}) folder.write(checkpoint_name(step), "");
  for (const char* other :
       {"model-x.safetensors", "model-7.safetensors.tmp", "model-.safetensors", "best.safetensors",
        "model-007.safetensors", "model.safetensors", "model--1.safetensors"}) {
    folder.write(other, "");
  }
  CHECK(checkpoint_steps(folder.path()) == std::vector<int64_t>{3, 20, 100});
  CHECK(checkpoint_steps(folder.path("none")).empty());
}

TEST_CASE("a folder that cannot be read is not taken for one without checkpoints") {
  const ScratchFolder folder;
  const std::string path = folder.path("checkpoints");
  std::filesystem::create_symlink("checkpoints", path);
  CHECK(message_of([&] { checkpoint_steps(path); }) ==
        "cannot read the folder " + path + ": Too many levels of symbolic links");
  const std::string file = folder.write("file", "");
  CHECK(message_of([&] { checkpoint_steps(file); }) ==
        "cannot read the folder " + file + ": Not a directory");
}

TEST_CASE("a safetensors file of another program is no checkpoint") {
  const ScratchFolder folder;
  const std::string path = folder.path("weights.safetensors");
  save_safetensors(path, {{"w", at::arange(3)}}, {{"format", "pt"}});
  CHECK(message_of([&] { load_checkpoint(path); }) ==
        path + ": not a checkpoint of stepop: its format is \"pt\", expected \"stepop-1\"");
  save_safetensors(path, {}, {{"format", "stepop-1"}, {"progress", "{"}});
  CHECK(message_of([&] {
          load_checkpoint(path);
        }).starts_with(path + ": the position of the run cannot be read: "));
}

/// A small checkpoint of step 3.
Checkpoint small_checkpoint() {
  Checkpoint checkpoint;
  checkpoint.tensors = {{"model.w", at::arange(4, at::kFloat)}, {"model.b", at::arange(3)}};
  checkpoint.config = "a: 1\n";
  checkpoint.progress.global_step = 3;
  return checkpoint;
}

TEST_CASE("a checkpoint with any bit flipped is damaged") {
  const ScratchFolder folder;
  const std::string path = save_checkpoint(folder.path(), small_checkpoint());
  CHECK(verify_checkpoint(path) == std::nullopt);
  const std::string bytes = read_bytes(path);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    write_bytes(path, changed);
    CAPTURE(bit);
    REQUIRE(verify_checkpoint(path).has_value());
    REQUIRE_THROWS_AS(load_checkpoint(path), Error);
  }
}

TEST_CASE("a damaged checkpoint is named with both checksums") {
  const ScratchFolder folder;
  const std::string path = save_checkpoint(folder.path(), small_checkpoint());
  const std::string checksum = load_safetensors(path).metadata.at("checksum");
  std::string bytes = read_bytes(path);
  const size_t digits = bytes.find("\"checksum\":\"") + 12;
  bytes.replace(digits, 16, "0123456789abcdef");
  write_bytes(path, bytes);
  const std::string reason = "its checksum is 0123456789abcdef, its content gives " + checksum;
  CHECK(verify_checkpoint(path) == reason);
  CHECK(message_of([&] { load_checkpoint(path); }) == path + ": damaged: " + reason);
  CHECK(read_checkpoint_header(path).progress.global_step == 3);  // which reads no tensor

  bytes.replace(digits - 12, 11, "\"checksun\":");
  write_bytes(path, bytes);
  CHECK(message_of([&] { load_checkpoint(path); }) == path + ": damaged: it has no checksum");
  CHECK(verify_checkpoint(path) == "it has no checksum");

  write_bytes(path, "");
  CHECK(verify_checkpoint(path) == "it has 0 bytes, too few for a safetensors file");
  std::filesystem::remove(path);
  CHECK(verify_checkpoint(path) == "cannot open: No such file or directory");
}

TEST_CASE("a header is read without the tensors") {
  const ScratchFolder folder;
  const std::string path = save_checkpoint(folder.path(), small_checkpoint());
  const CheckpointHeader header = read_checkpoint_header(path);
  CHECK(header.progress.to_json() == small_checkpoint().progress.to_json());
  CHECK(header.config == "a: 1\n");
  CHECK(header.file_bytes == std::filesystem::file_size(path));
  REQUIRE(header.tensors.size() == 2);
  CHECK(header.tensors[0].name == "model.b");
  CHECK((header.tensors[0].type == at::kLong));
  CHECK(header.tensors[1].shape == std::vector<int64_t>{4});
}

TEST_CASE("tied weights are stored once and come back under both names") {
  const ScratchFolder folder;
  Checkpoint saved = small_checkpoint();
  const at::Tensor shared = at::arange(1000, at::kFloat);
  saved.tensors["model.in"] = shared;
  saved.tensors["model.out"] = shared.view({1000});
  saved.tensors["model.turned"] = shared.view({10, 100}).t();  // the same memory in another order
  saved.tensors["model.none"] = at::zeros({0, 3});
  saved.tensors["model.nothing"] = at::zeros({0, 3});
  const std::string path = save_checkpoint(folder.path(), saved);
  CHECK(std::filesystem::file_size(path) < 2 * 4000 + 2000);
  CHECK(load_safetensors(path).metadata.at("aliases") == R"({"model.out":"model.in"})");
  CHECK_FALSE(load_safetensors(path).tensors.contains("model.out"));
  const State loaded = load_checkpoint(path).tensors;
  CHECK(differences(loaded, saved.tensors) == "");
  CHECK(loaded.at("model.out").is_same(loaded.at("model.in")));
  CHECK_FALSE(loaded.at("model.turned").is_alias_of(loaded.at("model.in")));
}

TEST_CASE("what two networks share is stored with each of them") {
  const ScratchFolder folder;
  Checkpoint saved = small_checkpoint();
  saved.tensors["ema_model.w"] = saved.tensors.at("model.w");
  const std::string path = save_checkpoint(folder.path(), saved);
  CHECK(differences(load_safetensors(path).tensors, saved.tensors) == "");
  CHECK_FALSE(load_safetensors(path).metadata.contains("aliases"));
}

TEST_CASE("aliases that lead nowhere are refused") {
  const ScratchFolder folder;
  const std::string path = folder.path("a.safetensors");
  const auto refused = [&](const std::string& aliases, const std::string& reason) {
    save_safetensors(path, small_checkpoint().tensors,
                     {{"format", "stepop-1"},
                      {"progress", Progress().to_json()},
                      {"config", ""},
                      {"checksum", ""},
                      {"aliases", aliases}});
    CHECK(message_of([&] { load_checkpoint(path); }) == path + ": " + reason);
  };
  refused("{", "its aliases are not a map of names");
  refused("[1]", "its aliases are not a map of names");
  refused(R"({"a": 1})", "its aliases are not a map of names");
  refused(R"({"a": "b"})", "tensor \"a\" refers to \"b\", which is not there");
  refused(R"({"a": "model.b", "b": "a"})", "tensor \"b\" refers to \"a\", which is not there");
  refused(R"({"model.w": "model.b"})",
          "tensor \"model.w\" is there twice, as itself and as \"model.b\"");
}

TEST_CASE(
    "Python verifies and reads a checkpoint, of every type, and we read and verify Python's") {
  const ScratchFolder folder;
  Checkpoint saved = small_checkpoint();
  saved.tensors = examples();
  saved.tensors["model.turned"] = saved.tensors["model.tied"] = saved.tensors.at("transposed");
  const std::string path = save_checkpoint(folder.path(), saved);
  CHECK(run_peer("check_checkpoint", path) == 0);

  REQUIRE(run_peer("rewrite_checkpoint", path) == 0);
  const std::string theirs = path + ".python";
  CHECK(read_bytes(theirs) != read_bytes(path));  // another order of the metadata, another checksum
  CHECK(verify_checkpoint(theirs) == std::nullopt);
  const Checkpoint loaded = load_checkpoint(theirs);
  check_equal(loaded.tensors, saved.tensors);
  CHECK(loaded.config == "a: 1\n");
  CHECK(loaded.progress.to_json() == saved.progress.to_json());
}

}  // namespace checkpoint_test
}  // namespace stepop
