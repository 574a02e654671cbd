#include "runtime/data/stream.h"
#include "runtime/train/distributed/world.h"

#include <ATen/ops/scalar_tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/data/loader.h"
#include "runtime/data/record_sequence.h"
#include "runtime/data/stream_batches.h"
#include "runtime/data/stream_dataset.h"
#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace stream_test {

/// What all streams of a test share.
struct World {
  int64_t records = 20;
  int64_t bad = -1;    ///< Cannot be decoded.
  int64_t hangs = -1;  ///< Never comes.
  std::atomic<int> reads = 0;
  std::atomic<int> readers = 0;  ///< At once.
};

/// The numbers 0, 1, ...; the first half and the second half swap places in every other pass.
class Counter : public Stream {
 public:
  explicit Counter(World& world) : world_(world) {}
  void begin(const StreamPass& pass) override {
    next_ = 0, is_swapped_ = pass.shuffles && pass.number % 2 == 1;
  }
  std::optional<Record> next(const InterruptCheck& interrupt) override {
    if (++world_.readers > 1) throw std::logic_error("two threads read at once");
    std::optional<Record> record;
    if (next_ < world_.records) {
      const int64_t half = is_swapped_ ? world_.records / 2 : 0;
      const int64_t number = (next_ + half) % world_.records;
      while (number == world_.hangs) {
        if (interrupt) interrupt();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      record = Record{.name = fmt::format("file.txt: line {}", number),
                      .parts = {{"n", std::to_string(number)}}};
      ++next_;
      ++world_.reads;
    }
    --world_.readers;
    return record;
  }
  std::string save() const override { return std::to_string(next_); }
  void load(const std::string& state, const InterruptCheck& /*interrupt*/) override {
    next_ = std::stoll(state);
  }
  Example decode(const Record& record, Random& random) const override {
    const int64_t number = std::stoll(record.parts.at("n"));
    if (number == world_.bad) throw std::runtime_error("torn");
    // Later ones are quicker, so that workers overtake each other.
    std::this_thread::sleep_for(std::chrono::microseconds(std::max<int64_t>(50 - number, 0)));
    return {.tensors = {{"x", at::scalar_tensor(number, at::kLong)},
                        {"noise", at::scalar_tensor(random.normal(), at::kDouble)}},
            .texts = {}};
  }
  std::optional<int64_t> count(const InterruptCheck& /*interrupt*/) override {
    return world_.records;
  }

 private:
  World& world_;
  int64_t next_ = 0;
  bool is_swapped_ = false;
};

int64_t number_of(const Record& record) { return std::stoll(record.parts.at("n")); }

std::vector<int64_t> take(RecordSequence& sequence, int64_t count) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(number_of(*sequence.next({})));
  return numbers;
}

TEST_CASE("each pass through a buffer gives each record once, in an order of its own") {
  World world{.records = 60};
  Counter stream(world);
  RecordSequence sequence(stream, {.seed = 3, .shuffles = true, .buffer = 16});
  std::set<std::vector<int64_t>> passes;
  for (int pass = 0; pass < 4; ++pass) {
    std::vector<int64_t> numbers = take(sequence, 60);
    passes.insert(numbers);
    std::sort(numbers.begin(), numbers.end());
    std::vector<int64_t> all(60);
    std::iota(all.begin(), all.end(), 0);
    CHECK(numbers == all);
  }
  CHECK(passes.size() == 4);
}

TEST_CASE("a buffer mixes records that lie some buffers apart, and each as often as any other") {
  // The first record of a pass is a uniform draw from the first `buffer` ones.
  World world{.records = 40};
  Counter stream(world);
  std::vector<int> first(10);
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    RecordSequence sequence(stream, {.seed = seed, .buffer = 10});
    ++first[static_cast<size_t>(take(sequence, 1)[0])];
  }
  double chi_square = 0;
  for (const int count : first) chi_square += (count - 200.0) * (count - 200.0) / 200.0;
  CHECK(chi_square < 27.9);  // 9 degrees of freedom: one draw in a thousand is above
}

TEST_CASE("a sequence that resumes anywhere gives the same records, and reads few again") {
  Random random(7);
  for (int trial = 0; trial < 60; ++trial) {
    World world{.records = 1 + random.below(90)};
    const SequenceOptions options{
        .seed = random(), .shuffles = random.below(2) == 0, .buffer = 1 + random.below(40)};
    const int64_t total = 3 * world.records + 5;
    const int64_t place = random.below(total);
    CAPTURE(trial);
    CAPTURE(world.records);
    CAPTURE(options.buffer);
    CAPTURE(place);
    Counter stream(world);
    RecordSequence whole(stream, options);
    take(whole, place);
    // The text is made when further records were given, as that of a batch that was prefetched.
    const auto state = whole.state();
    const std::vector<int64_t> rest = take(whole, total - place);
    Counter other(world);
    RecordSequence resumed(other, options);
    world.reads = 0;
    resumed.load(state(), {});
    CHECK(world.reads <= 40 * 8);
    CHECK(resumed.number() == place);
    CHECK(take(resumed, total - place) == rest);
  }
}

TEST_CASE("what a resume reads again is about B ln B records, and its state is small") {
  World world{.records = 100'000};
  Counter stream(world);
  constexpr int64_t kBuffer = 256;
  RecordSequence sequence(stream, {.seed = 1, .buffer = kBuffer});
  take(sequence, 50'000);
  const std::string state = sequence.state()();
  CHECK(state.size() < 8 * kBuffer);
  world.reads = 0;
  sequence.load(state, {});
  CHECK(world.reads < 3 * kBuffer * std::log(kBuffer));
}

TEST_CASE("a run that resumes with another size of the buffer gives the same records of the pass") {
  World world{.records = 50};
  for (const int64_t buffer : {1, 5, 30}) {
    Counter stream(world);
    RecordSequence before(stream, {.seed = 1, .buffer = 12});
    std::vector<int64_t> numbers = take(before, 20);
    RecordSequence after(stream, {.seed = 1, .buffer = buffer});
    after.load(before.state()(), {});
    const std::vector<int64_t> rest = take(after, 30);
    numbers.insert(numbers.end(), rest.begin(), rest.end());
    CHECK(std::set<int64_t>(numbers.begin(), numbers.end()).size() == 50);
  }
}

TEST_CASE("a place that is none, and a stream that has become shorter, are reported") {
  World world{.records = 30};
  Counter stream(world);
  const SequenceOptions options{.seed = 1, .buffer = 4};
  const auto load = [&](const std::string& state) {
    return message_of([&] { RecordSequence(stream, options).load(state, {}); });
  };
  CHECK(load("{").starts_with("the place in the stream cannot be read: "));
  CHECK(load(R"({"pass":0,"number":3,"read":2,"place":3,"stream":"","held":[]})") ==
        "the place in the stream cannot be read: its numbers contradict each other");
  CHECK(load(R"({"pass":0,"number":3,"read":5,"place":1,"stream":"1","held":[2,2]})") ==
        "the place in the stream cannot be read: its numbers contradict each other");
  RecordSequence sequence(stream, options);
  take(sequence, 20);
  const std::string state = sequence.state()();
  world.records = 10;
  CHECK(load(state).starts_with("the stream has changed: pass 0 ends after "));
  world.records = 0;
  RecordSequence empty(stream, options);
  CHECK(message_of([&] { empty.next({}); }) ==
        "the stream has no record, or its filter leaves none");
}

StreamDataset dataset_of(World& world, Value::Map params = {}) {
  return {Config(Value(std::move(params))),
          [&world](const Config&) { return std::make_unique<Counter>(world); }};
}

struct Given {
  std::vector<int64_t> x;
  std::vector<double> noise;
  std::vector<int64_t> index;
  std::vector<std::string> states;  ///< Behind each batch.
};

/// The batches from `first` to before `end`.
Given load(World& world, int64_t workers, int64_t buffer, int64_t first, int64_t end,
           const std::string& state = "", bool drop_last = false) {
  const StreamDataset dataset = dataset_of(world);
  const BatchOrder order("datasets/train", std::make_unique<RunningNumbers>(world.records),
                         {.batch_size = 7, .drop_last = drop_last, .seed = 5});
  const auto source = std::make_shared<StreamBatches>(
      dataset, order, SequenceOptions{.seed = 5, .shuffles = true, .buffer = buffer},
      SourceStart{.batch = first, .state = state});
  Loader loader(source, {.workers = workers, .first_batch = first, .end_batch = end});
  Given given;
  while (loader.has_next()) {
    const Batch batch = loader.next();
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(given.x, values_of<int64_t>(batch["x"]));
    append(given.noise, values_of<double>(batch["noise"]));
    append(given.index, values_of<int64_t>(batch["index"]));
    given.states.push_back(loader.state()());
  }
  return given;
}

TEST_CASE("batches of a stream are the same with any number of workers, from any place on") {
  for (const int64_t buffer : {1, 9}) {
    for (const bool drop_last : {false, true}) {
      World world;
      const Given whole = load(world, 0, buffer, 0, 12, "", drop_last);
      const int64_t per_epoch = drop_last ? 14 : 20;
      // An epoch is a pass.
      CHECK(std::set<int64_t>(whole.x.begin(), whole.x.begin() + per_epoch).size() ==
            static_cast<size_t>(per_epoch));
      CHECK(whole.index[static_cast<size_t>(per_epoch)] == 20);
      for (const int64_t workers : {0, 1, 3}) {
        CAPTURE(workers);
        const Given again = load(world, workers, buffer, 0, 12, "", drop_last);
        CHECK(again.x == whole.x);
        CHECK(again.noise == whole.noise);
        CHECK(again.states == whole.states);
        for (const int64_t place : {1, 2, 3, 5, 6}) {
          CAPTURE(place);
          const Given rest = load(world, workers, buffer, place, 12,
                                  again.states[static_cast<size_t>(place - 1)], drop_last);
          CHECK(std::equal(rest.x.rbegin(), rest.x.rend(), whole.x.rbegin()));
          CHECK(std::equal(rest.noise.rbegin(), rest.noise.rend(), whole.noise.rbegin()));
          CHECK(rest.states.back() == whole.states.back());
        }
      }
    }
  }
}

TEST_CASE("without a state a stream begins with the pass of the epoch and reads on to the batch") {
  World world;
  const Given whole = load(world, 0, 1, 0, 6);
  const Given rest = load(world, 2, 1, 4, 6);
  CHECK(std::equal(rest.x.rbegin(), rest.x.rend(), whole.x.rbegin()));
}

TEST_CASE(
    "an example that cannot be decoded is reported with its record, or left out and counted") {
  World world{.bad = 9};
  for (const int64_t workers : {0, 2}) {
    CHECK(message_of([&] { load(world, workers, 1, 0, 3); }) ==
          "datasets/train: example 9: file.txt: line 9: torn; on_damage: skip in the config of the "
          "stream leaves damaged records out");
  }
  const StreamDataset skips = dataset_of(world, Value::Map{{"on_damage", Value("skip")}});
  const BatchOrder order("datasets/train", std::make_unique<RunningNumbers>(20), {.batch_size = 4});
  StreamBatches batches(skips, order, {}, {});
  batches.take(0, {});
  batches.take(1, {});
  const Batch batch = batches.take(2, {}).load();
  CHECK(values_of<int64_t>(batch["x"]) == std::vector<int64_t>{8, 8, 10, 11});
  CHECK(batch.indices() == std::vector<int64_t>{8, 8, 10, 11});
  CHECK(skips.skipped()->news() ==
        "1 damaged record was skipped so far; the last one: file.txt: line 9: torn");
  CHECK(skips.skipped()->news() == "");
  // What was evaluated is all of it, or an error.
  StreamBatches evaluation(skips, order, {.is_one_pass = true}, {.batch = 2});
  CHECK(message_of([&] { evaluation.take(2, {}).load(); }) == "example 9: file.txt: line 9: torn");
  const BatchOrder alone("datasets/train", std::make_unique<RunningNumbers>(20), {.batch_size = 1});
  StreamBatches single(skips, alone, {}, {.batch = 9});
  CHECK(message_of([&] { single.take(9, {}).load(); }) ==
        "every example of a batch of 1 is damaged; the last one: file.txt: line 9: torn");
}

TEST_CASE("a pass that is shorter than the config says ends an evaluation with the number") {
  World world;
  const StreamDataset dataset = dataset_of(world, Value::Map{{"examples", Value(int64_t{25})}});
  CHECK(dataset.size() == 25);
  const BatchOrder order("datasets/validation", std::make_unique<RunningNumbers>(25),
                         {.batch_size = 10});
  Loader loader(std::make_shared<StreamBatches>(
                    dataset, order, SequenceOptions{.is_one_pass = true}, SourceStart{}),
                {.workers = 2, .end_batch = 3});
  loader.next();
  loader.next();
  CHECK(message_of([&] { loader.next(); }) ==
        "datasets/validation: a pass of the stream ends after 20 examples; expected 25. "
        "Correct \"examples\" in its config, or leave it out to have them counted");
}

TEST_CASE("a wait for data ends when the loader does, and by its interrupt") {
  World world{.hangs = 8};
  const StreamDataset dataset = dataset_of(world);
  const BatchOrder order("datasets/train", std::make_unique<RunningNumbers>(20), {.batch_size = 4});
  const auto source = [&] {
    return std::make_shared<StreamBatches>(dataset, order, SequenceOptions{}, SourceStart{});
  };
  {
    Loader loader(source(), {.workers = 2});
    loader.next();
    CHECK(loader.next().indices() == std::vector<int64_t>{4, 5, 6, 7});
  }
  world.readers = 0;
  int asked = 0;
  Loader loader(source(), {.workers = 0, .interrupt = [&] {
                             if (++asked > 20) throw Interrupted("stop");
                           }});
  loader.next();
  loader.next();
  CHECK_THROWS_AS(loader.next(), Interrupted);
  CHECK(loader.position() == 2);
  CHECK(loader.state()().find("\"number\":8") != std::string::npos);
}

TEST_CASE("a stream is also a dataset that is read in its stored order") {
  World world;
  const StreamDataset dataset = dataset_of(world);
  CHECK(dataset.size() == 20);
  for (const int64_t index : {0, 1, 5, 19, 2}) {
    Random random(1);
    CHECK(dataset.get(index, random).tensors.at("x").item<int64_t>() == index);
  }
  // Two who go through it at once do not make each other begin again and again.
  world.records = 2000;
  world.reads = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    for (const int64_t index : {i, 1000 + i}) {
      Random random(1);
      dataset.get(index, random);
    }
  }
  CHECK(world.reads < 4000);
  world.records = 20;
  Random random(1);
  CHECK(message_of([&] { dataset.get(20, random); }) ==
        "there is no example 20: the stream has 20");
}

TEST_CASE("a stream's own keys are checked") {
  World world;
  const auto message = [&](const char* key, Value value) {
    return message_of([&] { dataset_of(world, Value::Map{{key, std::move(value)}}); });
  };
  CHECK(message("shuffle", Value(int64_t{3})) ==
        "shuffle: expected true, false or {buffer: 1000}, found 3");
  CHECK(message("shuffle", Value(Value::Map{{"buffer", Value(int64_t{0})}})) ==
        "shuffle/buffer: expected 1 or more, found 0");
  CHECK(message("on_damage", Value("ignore")) ==
        "on_damage: expected stop or skip, found \"ignore\"");
  CHECK(message("examples", Value(int64_t{0})) == "examples: expected 1 or more, found 0");
}

}  // namespace stream_test
}  // namespace stepop
