#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "tests/dataset_of.h"
#include "tests/failing_files.h"
#include "tests/fuzz.h"
#include "tests/message_of.h"
#include "tests/runtime/data/views/numbers.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace cached_test {

namespace fs = std::filesystem;

constexpr int64_t kExamples = 40;

std::string cached(const ScratchFolder& folder, const std::string& more = "",
                   const std::string& source = "{class: TestNumbers, size: 40}") {
  return fmt::format("{{class: Cached, folder: {}{}, dataset: {}}}", folder.path("cache"), more,
                     source);
}

/// The only cache in the folder.
std::string cache_file(const ScratchFolder& folder) {
  std::string found;
  for (const auto& entry : fs::directory_iterator(folder.path("cache"))) {
    if (entry.path().extension() == ".examples") found = entry.path().string();
  }
  return found;
}

int count_files(const ScratchFolder& folder) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder.path("cache"))) {
    count += entry.path().extension() == ".examples" ? 1 : 0;
  }
  return count;
}

bool is_right(const Dataset& dataset, int64_t index) {
  const Example example = example_of(dataset, index);
  return example.tensors.at("id").item<int64_t>() == index &&
         values_of<float>(example.tensors.at("value")) ==
             std::vector<float>{float(index), float(index) + 0.5F} &&
         example.texts.at("name") == fmt::format("n{}", index) && example.tensors.size() == 3;
}

/// Reads every example, and how many of them the source had to give.
int64_t reads_of(const Dataset& dataset) {
  TestNumbers::reads = 0;
  for (int64_t i = 0; i < dataset.size(); ++i) CHECK(is_right(dataset, i));
  return TestNumbers::reads;
}

TEST_CASE("each example is read once, in memory and in a file that the next run has, too") {
  const ScratchFolder folder;
  const auto in_memory = dataset_of("{class: Cached, dataset: {class: TestNumbers, size: 40}}");
  CHECK(reads_of(*in_memory) == kExamples);
  CHECK(reads_of(*in_memory) == 0);
  const auto in_file = dataset_of(cached(folder));
  CHECK(in_file->notice().starts_with("0 of 40 examples are cached in " + folder.path()));
  CHECK(reads_of(*in_file) == kExamples);
  CHECK(reads_of(*in_file) == 0);
  const auto next = dataset_of(cached(folder));
  CHECK(next->notice().starts_with("40 of 40 examples are cached in " + folder.path()));
  CHECK(reads_of(*next) == 0);
  CHECK(values_of<int64_t>(batch_of(*next, {3, 7})["id"]) == std::vector<int64_t>{3, 7});
}

TEST_CASE("all examples are read at the start where the config says so") {
  const ScratchFolder folder;
  for (const std::string& yaml :
       {cached(folder, ", fill: start"),
        std::string("{class: Cached, fill: start, dataset: {class: TestNumbers, size: 40}}")}) {
    const auto dataset = dataset_of(yaml);
    CHECK(reads_of(*dataset) == 0);
  }
  CHECK(message_of([&] {
          dataset_of("{class: Cached, fill: start, dataset: {class: TestNumbers, bad: 5}}");
        }) == "example 5 of data/dataset: n5.png is damaged");
}

TEST_CASE("filling a cache at the start can be interrupted, and what is in it stays") {
  const ScratchFolder folder;
  {
    std::atomic<int> calls = 0;
    const InterruptScope scope([&] {
      if (++calls > 20) throw Interrupted("SIGINT arrived");
    });
    CHECK_THROWS_AS(dataset_of(cached(folder, ", fill: start")), Interrupted);
  }
  const auto next = dataset_of(cached(folder));
  CHECK(next->notice().starts_with("20 of 40 examples are cached in " + folder.path()));
  CHECK(reads_of(*next) == 20);
}

TEST_CASE("another config, version or source file makes another cache") {
  const ScratchFolder folder;
  dataset_of(cached(folder));
  dataset_of(cached(folder));
  CHECK(count_files(folder) == 1);
  dataset_of(cached(folder, "", "{class: TestNumbers, size: 40, run: 5}"));
  CHECK(count_files(folder) == 2);
  dataset_of(cached(folder, ", version: b"));
  CHECK(count_files(folder) == 3);
  const std::string table = folder.write("a.csv", "x\n1\n2\n");
  const auto value = [&] {
    const auto dataset = dataset_of(cached(folder, "", "{class: Csv, path: " + table + "}"));
    return example_of(*dataset, 0).tensors.at("x").item<int64_t>();
  };
  CHECK(value() == 1);
  CHECK(value() == 1);
  CHECK(count_files(folder) == 4);
  folder.write("a.csv", "x\n12345\n2\n");
  CHECK(value() == 12345);
  CHECK(count_files(folder) == 5);
  // A table of the same size that was written at another time.
  folder.write("a.csv", "x\n54321\n2\n");
  fs::last_write_time(table, fs::last_write_time(table) + std::chrono::seconds(5));
  CHECK(value() == 54321);
}

TEST_CASE("what the training decides on, numbers of classes and means, makes another cache") {
  const ScratchFolder folder;
  const std::string abc = folder.write("abc.csv", "town,x\na,100\nb,102\nc,\n");
  const std::string bc = folder.write("bc.csv", "town,x\nb,0\nc,2\nc,\n");
  const auto last_of = [&](const std::string& train) {
    const std::string columns =
        ", columns: {town: {type: class, key: class}, x: float}, missing: {x: mean}";
    const std::string text = fmt::format(
        "datasets: {{train: {{class: Csv, path: {}{}}}, validation: {{class: Cached, folder: {}, "
        "dataset: {{class: Csv, fit: train, path: {}{}}}}}}}",
        train, columns, folder.path("cache"), bc, columns);
    const auto read = [](const Config& config) {
      const auto training = datasets().build(config, "datasets/train");
      const auto dataset = datasets().build(config, "datasets/validation");
      const Example example = example_of(*dataset, 2);
      return std::pair(example.tensors.at("class").item<int64_t>(),
                       example.tensors.at("x").item<float>());
    };
    const Config config(parse_yaml(text, {"test.yaml", 0}));
    const auto found = read(config);
    // A run that resumes has what its start found in its config.
    const Config resumed(parse_yaml(to_yaml(*config.peek()), {"test.yaml", 0}));
    CHECK(read(resumed) == found);
    return found;
  };
  CHECK(last_of(bc) == std::pair(int64_t{1}, 1.0F));
  CHECK(count_files(folder) == 1);
  CHECK(last_of(abc) == std::pair(int64_t{2}, 101.0F));
  CHECK(count_files(folder) == 2);
}

TEST_CASE("what is random is refused, unless it is to be frozen") {
  const std::string source = "dataset: {class: TestNumbers, draws: true}}";
  CHECK(
      message_of([&] { dataset_of("{class: Cached, " + source); }) ==
      "test.yaml:1: data/dataset: its example 0 is another one each time it is read, and a cache "
      "would show the same one in each epoch: put what is random, such as Augment, around Cached, "
      "or choose frozen: true");
  const auto frozen = dataset_of("{class: Cached, frozen: true, " + source);
  const auto draw = [&](uint64_t seed) {
    Random random(seed);
    return frozen->get(3, random).tensors.at("draw").item<int64_t>();
  };
  CHECK(draw(1) == draw(2));
}

TEST_CASE("more than the limit is refused at the start, or read each time") {
  const std::string large = "dataset: {class: Synthetic, size: 1000, shape: [3, 64, 64]}}";
  CHECK(message_of([&] { dataset_of("{class: Cached, limit: 0.01, " + large); }) ==
        "test.yaml:1: data/limit: the 1,000 examples take about 49.4 MB, and the cache's limit is "
        "10.0 MB: choose limit: 1 (gigabytes), or partial: true, and those beyond the limit are "
        "read each time");
  CHECK(message_of([&] { dataset_of("{class: Cached, limit: 0, " + large); }) ==
        "test.yaml:1: data/limit: expected more than 0, found 0");
  const ScratchFolder folder;
  const std::string numbers = "partial: true, dataset: {class: TestNumbers, size: 40}}";
  for (const std::string& yaml :
       {"{class: Cached, limit: 3e-6, " + numbers,
        "{class: Cached, limit: 12e-6, folder: " + folder.path("cache") + ", " + numbers}) {
    const auto dataset = dataset_of(yaml);
    reads_of(*dataset);
    const int64_t again = reads_of(*dataset);
    CHECK(again > 0);
    CHECK(again < kExamples);
  }
  CHECK(fs::file_size(cache_file(folder)) <= 12000);
}

TEST_CASE("a damaged cache gives no wrong example: what is damaged is read again") {
  const ScratchFolder folder;
  reads_of(*dataset_of(cached(folder)));
  const std::string path = cache_file(folder);
  const std::string whole = read_bytes(path);
  CHECK(whole.size() > 8192);
  Random random(fuzz_seed());
  const uint64_t count = fuzz_count(150);
  for (uint64_t number = 0; number < count; ++number) {
    std::string bytes = whole;
    if (random.below(4) == 0)
      bytes.resize(static_cast<size_t>(random.below(int64_t(whole.size()))));
    for (int64_t i = random.below(20); i >= 0 && !bytes.empty(); --i) {
      // Most often in the table or the records.
      const size_t begin = random.below(8) == 0 || bytes.size() <= 8192 ? 0 : 8192;
      bytes[begin + size_t(random.below(int64_t(bytes.size() - begin)))] ^=
          static_cast<char>(1 + random.below(255));
    }
    write_bytes(path, bytes);
    CAPTURE(number);
    const auto dataset = dataset_of(cached(folder));
    reads_of(*dataset);              // all are right
    CHECK(reads_of(*dataset) == 0);  // and there again
  }
}

TEST_CASE("a full disk is one message, and what was cached before is whole") {
  const ScratchFolder folder;
  const auto dataset = dataset_of(cached(folder));
  for (int64_t i = 0; i < 10; ++i) example_of(*dataset, i);
  {
    FailingFiles files;
    files.leave_room(100);
    CHECK(message_of([&] {
            batch_of(*dataset, {3, 20});
          }) ==
          "example 20: cannot write the cache " + cache_file(folder) + ": No space left on device");
  }
  CHECK(reads_of(*dataset) == kExamples - 10);
  CHECK(reads_of(*dataset_of(cached(folder))) == 0);
}

TEST_CASE("writes of a few bytes at a time make whole examples") {
  const ScratchFolder folder;
  {
    FailingFiles files;
    files.shorten_writes(100);
    reads_of(*dataset_of(cached(folder)));
  }
  CHECK(reads_of(*dataset_of(cached(folder))) == 0);
}

TEST_CASE("a cache that cannot be written is read") {
  const ScratchFolder folder;
  const auto first = dataset_of(cached(folder));
  for (int64_t i = 0; i < 10; ++i) example_of(*first, i);
  FailingFiles files;
  files.fail(FileCall::kOpen, 1, EACCES);
  const auto dataset = dataset_of(cached(folder));
  CHECK(files.failed_path() == cache_file(folder));
  CHECK(reads_of(*dataset) == kExamples - 10);
  CHECK(reads_of(*dataset) == kExamples - 10);
}

TEST_CASE("threads that fill one cache together leave it whole") {
  const ScratchFolder folder;
  for (const std::string& yaml :
       {cached(folder), std::string("{class: Cached, dataset: {class: TestNumbers, size: 40}}")}) {
    const auto dataset = dataset_of(yaml);
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int64_t number = 0; number < 4; ++number) {
      threads.emplace_back([&, number] {
        for (int64_t i = 0; i < kExamples; ++i) {
          const int64_t index = number % 2 == 0 ? i : kExamples - 1 - i;
          Random random(0);
          const Example example = dataset->get(index, random);
          wrong += example.tensors.at("id").item<int64_t>() == index ? 0 : 1;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(reads_of(*dataset) == 0);
  }
}

/// Another process that reads all examples, in an order of its own, again and again.
pid_t start_reader(const std::string& yaml, uint64_t seed) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  try {
    Random random(seed);
    const auto dataset = dataset_of(yaml);
    for (int64_t i = 0; i < 4 * kExamples; ++i) {
      if (!is_right(*dataset, random.below(kExamples))) _exit(1);
    }
  } catch (...) {
    _exit(2);
  }
  _exit(0);
}

TEST_CASE("two processes that build one cache at once, killed at any moment, leave it whole") {
  const uint64_t rounds = fuzz_count(30);
  for (uint64_t round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const ScratchFolder folder;
    const std::string yaml = cached(folder);
    Random random(mix_seed({fuzz_seed(), round}));
    for (int start = 0; start < 3; ++start) {
      const pid_t first = start_reader(yaml, random());
      const pid_t second = start_reader(yaml, random());
      usleep(static_cast<useconds_t>(random.below(6000)));
      kill(first, SIGKILL);
      int status = 0;
      CHECK(waitpid(first, &status, 0) == first);
      if (WIFEXITED(status)) CHECK(WEXITSTATUS(status) == 0);
      if (start == 1) kill(second, SIGKILL);
      CHECK(waitpid(second, &status, 0) == second);
      if (start != 1) CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    }
    const auto dataset = dataset_of(yaml);
    reads_of(*dataset);
    CHECK(reads_of(*dataset) == 0);
    CHECK(count_files(folder) == 1);
  }
}

}  // namespace cached_test
}  // namespace stepop
