#include "runtime/data/streams/tar_shards.h"

#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/record_sequence.h"
#include "runtime/data/stream_dataset.h"
#include "runtime/data/streams/shard_list.h"
#include "tests/dataset_of.h"
#include "tests/fuzz.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/runtime/data/streams/shards.h"
#include "tests/scratch_folder.h"
#include "tests/tar_file.h"

namespace stepop {
namespace tar_shards_test {

using namespace stepop::shards_for_tests;

TEST_CASE("who waits for a command that hangs can be interrupted, also below views") {
  const std::string hung =
      "{class: TarShards, urls: a.tar, examples: 9, timeout: 20, retries: 0, pipe: 'exec "
      "sleep 100; {url}'}";
  for (const std::string& yaml :
       {hung, "{class: Subset, range: [2, 9], dataset: {class: Concat, datasets: [" + hung + "]}}",
        "{class: Cached, dataset: " + hung + "}"}) {
    CAPTURE(yaml);
    int calls = 0;
    const InterruptScope scope([&] {
      if (++calls == 3) throw Interrupted("SIGINT arrived");
    });
    CHECK_THROWS_AS(batch_of(*dataset_of(yaml), {3, 4}), Interrupted);
  }
  CHECK_FALSE(InterruptScope::current());
}

TEST_CASE("braces stand for ranges and names") {
  CHECK(expand_braces("a.tar") == Strings{"a.tar"});
  CHECK(expand_braces("s-{08..11}.tar") == Strings{"s-08.tar", "s-09.tar", "s-10.tar", "s-11.tar"});
  CHECK(expand_braces("{a,b}-{0..1}") == Strings{"a-0", "a-1", "b-0", "b-1"});
  const auto message = [](const char* pattern) {
    return message_of([&] { expand_braces(pattern); });
  };
  CHECK(message("s-{1..x}.tar") ==
        "s-{1..x}.tar: \"{1..x}\" means nothing; braces hold a range of numbers, {000..099}, or "
        "names, {train,extra}");
  CHECK(message("s-{0..9.tar") == "s-{0..9.tar: a brace is not closed");
  CHECK(message("{0..9999}{0..9999}") == "{0..9999}{0..9999}: more than 1000000 shards");
}

TEST_CASE("records of a folder, a pattern and packed shards are read in the order of their names") {
  const Shards shards;
  CHECK(pass_of("path: " + shards.path()) == numbers(0, 40));
  CHECK(pass_of("path: '" + shards.path() + "/s-{01..02}.tar'") == numbers(10, 30));
  CHECK(pass_of("path: " + shards.path("s-03.tar")) == numbers(30, 40));
  std::system(("gzip -k " + shards.path("s-02.tar")).c_str());
  CHECK(pass_of("path: " + shards.path("s-02.tar.gz")) == numbers(20, 30));
  TarShards stream(config_of("path: " + shards.path()));
  CHECK(stream.count({}) == 50);  // with the packed one
}

TEST_CASE("each pass shuffles the shards anew, by the seed") {
  const Shards shards;
  const std::string yaml = "path: " + shards.path();
  const auto pass = [&](uint64_t seed, int64_t number) {
    return pass_of(yaml, {.number = number, .seed = seed, .shuffles = true});
  };
  Strings sorted = pass(1, 0);
  CHECK(pass(1, 0) == sorted);
  bool differs = false;
  for (int64_t number = 1; number < 5; ++number) differs = differs || pass(1, number) != sorted;
  CHECK(differs);
  std::sort(sorted.begin(), sorted.end());
  Strings all = numbers(0, 40);
  std::sort(all.begin(), all.end());
  CHECK(sorted == all);
}

TEST_CASE("what a pass has left is the same after a resume at any record") {
  const Shards shards;
  std::system(("cd " + shards.path() + " && gzip s-01.tar").c_str());
  const std::string file = "path: " + shards.path();
  const std::string piped = "urls: ['" + shards.path() + "/s-{00,02}.tar', '" + shards.path() +
                            "/s-01.tar.gz']\npipe: cat {url}";
  for (const std::string& yaml : {file, piped}) {
    CAPTURE(yaml);
    const StreamPass pass{.number = 2, .seed = 5, .shuffles = true};
    TarShards whole(config_of(yaml));
    whole.begin(pass);
    for (int place = 0;; ++place) {
      CAPTURE(place);
      TarShards resumed(config_of(yaml));
      resumed.begin(pass);
      resumed.load(whole.save(), {});
      TarShards again(config_of(yaml));
      again.begin(pass);
      for (int i = 0; i < place; ++i) again.next({});
      if (place % 7 == 0) CHECK(rest(resumed) == rest(again));
      if (!whole.next({})) break;
    }
  }
}

TEST_CASE("a resume with other shards is refused") {
  const Shards shards;
  TarShards stream(config_of("path: " + shards.path()));
  stream.begin({});
  for (int i = 0; i < 12; ++i) stream.next({});
  const std::string state = stream.save();
  std::filesystem::remove(shards.path("s-00.tar"));
  TarShards other(config_of("path: " + shards.path()));
  other.begin({});
  CHECK(message_of([&] { other.load(state, {}); }) ==
        "the shards have changed: number 1 of this pass was s-01.tar, and is now s-02.tar. Resume "
        "with the same shards, or begin anew with these weights: -r");
}

TEST_CASE("the place in a shard is the same before and after it was loaded") {
  const Shards shards;
  for (const int passed : {0, 3, 10, 14}) {
    CAPTURE(passed);
    TarShards stream(config_of("path: " + shards.path()));
    stream.begin({});
    for (int i = 0; i < passed; ++i) stream.next({});
    const std::string state = stream.save();
    TarShards other(config_of("path: " + shards.path()));
    other.begin({});
    other.load(state, {});
    CHECK(other.save() == state);
    CHECK(rest(other) == rest(stream));
  }
}

TEST_CASE("a number of a JSON that its type cannot hold is refused") {
  const ScratchFolder folder;
  const auto message = [&](const std::string& json) {
    folder.write("a.tar", tar_member("7.json", json) + tar_end());
    TarShards stream(config_of("path: " + folder.path()));
    stream.begin({});
    Random random(1);
    return message_of([&] { stream.decode(*stream.next({}), random); });
  };
  CHECK(message(R"({"a": 9223372036854775807, "b": [-9223372036854775808, 3.4e38]})") ==
        "no error");
  CHECK(message(R"({"a": 18446744073709551615})")
            .ends_with("holds 18446744073709551615, which no int64 can be"));
  CHECK(message(R"({"a": [1, 9223372036854775808]})")
            .ends_with("holds 9223372036854775808, which no int64 can be"));
  CHECK(message(R"({"a": 1e39})").ends_with("holds 1e+39, which no float32 can be"));
  CHECK(message(R"({"a": [1, -1e300]})").ends_with("holds -1e+300, which no float32 can be"));
  CHECK(message(R"({"a": 1e400})").ends_with("it has a number that is too large"));
  CHECK(message("{").ends_with("it is not valid JSON (at its byte 2)"));
}

TEST_CASE("an example has the picture, the class, texts and the numbers of a JSON") {
  const ScratchFolder folder;
  folder.write(
      "a.tar",
      tar_member("x/7.PNG", png(255)) + tar_member("x/7.mask.png", png(0)) +
          tar_member("x/7.cls", " 3\n") + tar_member("x/7.txt", "a cat") +
          tar_member("x/7.json",
                     R"({"size": 4, "at": {"x": [1.5, 2]}, "ok": true, "who": "me", "no": null})") +
          tar_member("x/7.bin", "?") + tar_member("__shard__", "") +
          tar_member(".hidden.cls", "1") + tar_end());
  TarShards stream(config_of("path: " + folder.path() + "\nchannels: 1\nsize: [2, 2]"));
  stream.begin({});
  const auto record = stream.next({});
  CHECK(record->name == folder.path("a.tar") + ": x/7");
  CHECK_FALSE(stream.next({}));
  Random random(1);
  const Example example = stream.decode(*record, random);
  CHECK(example.tensors.key_list() == "image, mask, class, json/at/x, json/ok, json/size");
  CHECK(example.tensors.at("image").sizes() == at::IntArrayRef({1, 2, 2}));
  CHECK(example.tensors.at("image").min().item<float>() == 1);
  CHECK(example.tensors.at("class").item<int64_t>() == 3);
  CHECK(example.tensors.at("json/at/x").sum().item<float>() == 3.5F);
  CHECK((example.tensors.at("json/size").scalar_type() == at::kLong));
  CHECK(example.texts.at("text") == "a cat");
  CHECK(example.texts.at("json/who") == "me");
  CHECK(example.texts.at("key") == "x/7");
  TarShards chosen(config_of("path: " + folder.path() + "\nkeys: {cls: label}"));
  chosen.begin({});
  CHECK(chosen.decode(*chosen.next({}), random).tensors.key_list() == "label");
}

TEST_CASE("arrays of NumPy are tensors of their types and shapes; others are refused") {
  const ScratchFolder folder;
  run_python(R"(
import io, sys, tarfile
import numpy as np
arrays = [np.arange(6, dtype="f4").reshape(2, 3), np.array(True), np.zeros((0, 2), "i8"), np.array([-1], "i2"),
          np.array(["a"]), np.asfortranarray(np.ones((2, 2)))]
with tarfile.open(sys.argv[1] + "/a.tar", "w") as tar:
    for i, array in enumerate(arrays):
        file = io.BytesIO()
        np.save(file, array)
        for size in (len(file.getvalue()), len(file.getvalue()) - 1):
            info = tarfile.TarInfo(f"{i}-{size}.npy")
            info.size = size
            file.seek(0)
            tar.addfile(info, file)
)",
             {folder.path()});
  TarShards stream(config_of("path: " + folder.path()));
  stream.begin({});
  Strings found;
  Random random(1);
  while (const auto record = stream.next({})) {
    found.push_back(message_of([&] {
      const Example example = stream.decode(*record, random);
      const at::Tensor& array = example.tensors.at("array");
      throw Error(fmt::format("{} [{}] {}", c10::toString(array.scalar_type()),
                              fmt::join(array.sizes(), ", "), array.sum().item<double>()));
    }));
  }
  REQUIRE(found.size() == 12);
  CHECK(found[0] == "Float [2, 3] 15");
  CHECK(found[1] == ".npy: the array: cut short: float32 [2, 3] needs 24 bytes, found 23 bytes");
  CHECK(found[2] == "Bool [] 1");
  CHECK(found[3] == ".npy: the array: cut short: bool [] needs 1 bytes, found 0 bytes");
  CHECK(found[4] == "Long [0, 2] 0");
  CHECK(found[6] == "Short [1] -1");
  CHECK(found[8] == ".npy: the array: expected numbers, found text of 1 characters [1]");
  CHECK(found[10] == "Double [2, 2] 4");
}

TEST_CASE("shards that webdataset wrote are read") {
  const ScratchFolder folder;
  run_python(R"(
import io, sys, tarfile, time
# As webdataset.TarWriter writes: members of a sample side by side, with owner and time.
with tarfile.open(sys.argv[1] + "/w.tar", "w|", format=tarfile.USTAR_FORMAT) as tar:
    for i in range(3):
        for name, content in (("cls", b"%d" % i), ("txt", b"text %d" % i)):
            info = tarfile.TarInfo(f"sample{i:06d}.{name}")
            info.size, info.mtime, info.mode, info.uname = len(content), time.time(), 0o444, "bigdata"
            tar.addfile(info, io.BytesIO(content))
)",
             {folder.path()});
  CHECK(pass_of("path: " + folder.path()) == numbers(0, 3));
}

TEST_CASE("a damaged member is reported with shard and name, and left out on request") {
  const ScratchFolder folder;
  const auto good = [](int i) { return tar_member(fmt::format("{}.cls", i), std::to_string(i)); };
  struct Row {
    std::string name;
    std::string bytes;
    std::string message;  ///< Behind the path.
    Strings kept;
  };
  std::string flipped = tar_member("1.cls", "1");
  flipped[3] ^= 1;
  const Row rows[] = {{"flipped",
                       good(0) + flipped + good(2) + tar_end(),
                       ": record 0: damaged at byte 1024: no header of a tar archive is there",
                       {"2"}},
                      {"link",
                       good(0) + tar_member("1.cls", "", '2') + good(2) + tar_end(),
                       ": 1.cls: it is a link; pack the files themselves, by tar's --dereference",
                       {"0", "2"}},
                      {"twice",
                       good(0) + good(1) + good(1) + good(2) + tar_end(),
                       ": 1.cls: the record has two members of that name",
                       {"0", "2"}},
                      {"cut",
                       good(0) + good(1) + good(2).substr(0, 700),
                       ": record 2: the archive is cut short: it ends in the middle of a member",
                       {"0", "1"}},
                      {"large",
                       good(0) + tar_header("1.cls", uint64_t{3} << 30),
                       ": 1.cls: it has 3.2 GB, and more than 1.1 GB are not read",
                       {"0"}}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const std::string path = folder.write(row.name + ".tar", row.bytes);
    CHECK(message_of([&] { pass_of("path: " + path); }) ==
          path + row.message +
              "; on_damage: skip in the config of the stream leaves damaged records out");
    TarShards stream(config_of("path: " + path + "\non_damage: skip"));
    const auto skipped = std::make_shared<SkippedRecords>();
    stream.count_skipped(skipped);
    stream.begin({});
    CHECK(rest(stream) == row.kept);
    const std::string news = skipped->news();
    CAPTURE(news);
    CHECK(news.find(row.name == "large" ? "2 damaged records were skipped" : path + row.message) !=
          std::string::npos);
  }
  folder.write("picture.tar", tar_member("1.png", "no picture") + tar_end());
  TarShards stream(config_of("path: " + folder.path("picture.tar")));
  stream.begin({});
  Random random(1);
  const auto record = stream.next({});
  CHECK(message_of([&] { stream.decode(*record, random); }).starts_with(".png: the image: "));
}

/// A script that prints a shard, after it did `first`; `$1` is its path.
std::string pipe(const Shards& shards, const std::string& first) {
  const std::string script = shards.write("pipe.sh", first + "\n");
  return "urls: '" + shards.path() + "/s-{00..03}.tar'\npipe: \"sh " + script +
         " {url}\"\nretry_wait: 0\n";
}

TEST_CASE("a command that fails is tried again where it was, and its last words end the run") {
  const Shards shards;
  // It fails in the middle of each shard, at the first time.
  const std::string once = pipe(
      shards, "if test -e $1.seen; then cat $1; else touch $1.seen; head -c 9000 $1; exit 3; fi");
  CHECK(pass_of(once) == numbers(0, 40));
  // The same with an end that looks good.
  std::system(("rm " + shards.path() + "/*.seen").c_str());
  CHECK(pass_of(pipe(shards,
                     "if test -e $1.seen; then cat $1; else touch $1.seen; head -c 9000 $1; fi")) ==
        numbers(0, 40));
  const std::string broken =
      pipe(shards, "head -c 9000 $1; echo the disk is on fire >&2; exit 5") + "retries: 2";
  CHECK(
      message_of([&] { pass_of(broken); }) ==
      fmt::format(
          "{0}/s-00.tar: the command failed 3 times: it ended with status 5: the disk is on fire\n"
          "  sh {0}/pipe.sh {0}/s-00.tar",
          shards.path()));
  const std::string early = pipe(shards, "head -c 9000 $1") + "retries: 0";
  CHECK(message_of([&] { pass_of(early); })
            .find("the command failed: " + shards.path() +
                  "/s-00.tar: record 0004: the archive is cut short") != std::string::npos);
  const std::string killed =
      message_of([&] { pass_of(pipe(shards, "kill -9 $$") + "retries: 0"); });
  // A shell replaces itself by the last command, or reports how that ended.
  CHECK((killed.find("it was ended by signal 9 and printed no reason") != std::string::npos ||
         killed.find("it ended with status 137") != std::string::npos));
}

TEST_CASE("a command that hangs is ended and tried again; an interrupt ends the wait") {
  const Shards shards;
  const std::string yaml =
      pipe(shards,
           "if test -e $1.seen; then cat $1; else touch $1.seen; head -c 9000 $1; sleep 100; "
           "touch $1.over; fi");
  CHECK(pass_of(yaml + "timeout: 0.5\nretries: 20") == numbers(0, 40));
  std::system(("rm " + shards.path() + "/*.seen").c_str());
  TarShards stream(config_of(yaml));
  stream.begin({});
  int asked = 0;
  const InterruptCheck interrupt = [&] {
    if (++asked > 4) throw Interrupted("stop");
  };
  CHECK_THROWS_AS(while (stream.next(interrupt)){}, Interrupted);
  CHECK_FALSE(std::filesystem::exists(shards.path() + "/s-00.tar.over"));
}

TEST_CASE("a config of shards that cannot be is refused with its place") {
  const Shards shards;
  const auto message = [&](const std::string& yaml) {
    return message_of([&] { TarShards stream(config_of(yaml)); });
  };
  CHECK(message("path: /nowhere/s-{0..3}.tar") ==
        "test.yaml:1: path: no such file: /nowhere/s-0.tar");
  CHECK(message("urls: s3://b/{0..3}.tar")
            .ends_with("remote shards need a command that prints one: \"pipe\", such as  curl -sf "
                       "{url}  or  aws s3 cp {url} -"));
  CHECK(message("path: s3://b/a.tar") ==
        "test.yaml:1: path: remote shards are \"urls\", with the command \"pipe\" that prints one");
  CHECK(message("urls: a.tar\npipe: cat a.tar") ==
        "test.yaml:2: pipe: the command has no {url} in it");
  CHECK(message("path: " + shards.path() + "\nkeys: {bin: x}") ==
        "test.yaml:2: keys/bin: members .bin cannot be read; those that can are png, jpg, jpeg, "
        "webp, "
        "cls, txt, json, npy, and those that \"decode\" has a command for");
  const ScratchFolder empty;
  CHECK(message("path: " + empty.path()) ==
        "test.yaml:1: path: " + empty.path() + ": no .tar, .tar.gz or .tgz is there");
}

TEST_CASE("a mutated shard gives an Error or records, in bounded time and memory") {
  const uint64_t seed = fuzz_seed();
  const uint64_t count = fuzz_count(400);
  CAPTURE(seed);
  const ScratchFolder folder;
  std::string npy("\x93NUMPY\x01\0\x3A\0", 10);
  npy += "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n12345678";
  const std::string whole = tar_member("./0.npy", npy) + shard(0, 3);
  ByteMutator mutator(seed, {"ustar", std::string(12, '7'), ".png", ".json", "\x80", "./0000"},
                      {"ustar", ".png"});
  FuzzWatch watch("shards", seed);
  uint64_t reads = 0;
  for (uint64_t i = fuzz_first(); i < count; ++i) {
    CAPTURE(i);
    const std::string path = folder.write("a.tar", mutator.mutate(whole));
    watch.run(i, [&] {
      for (const char* more : {"", "\non_damage: skip"}) {
        try {
          TarShards stream(config_of("path: " + path + more));
          stream.begin({});
          while (const auto record = stream.next({})) {
            ++reads;
            Random random(1);
            stream.decode(*record, random);
          }
        } catch (const Error& error) {
          REQUIRE(std::string(error.what()).size() > 10);
        }
      }
    });
  }
  CHECK(reads > count);
}

}  // namespace tar_shards_test
}  // namespace stepop
