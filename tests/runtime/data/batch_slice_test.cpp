// The parts of batches that several processes take, and batches in turn.

#include <doctest/doctest.h>

#include <numeric>

#include "runtime/data/batch_source.h"

namespace stepop {
namespace batch_slice_test {

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 100);
  return all;
}

TEST_CASE("the parts of all processes together are the batch, in its order") {
  for (int64_t size = 1; size <= 9; ++size) {
    for (int64_t count = 1; count <= 40; ++count) {
      CAPTURE(size);
      CAPTURE(count);
      std::vector<int64_t> together;
      int64_t most = 0;
      int64_t least = count;
      for (int64_t rank = 0; rank < size; ++rank) {
        const BatchSlice slice{rank, size};
        const int64_t length = slice.length(count);
        CHECK(slice.first(count) == static_cast<int64_t>(together.size()));
        most = std::max(most, length);
        least = std::min(least, length);
        std::vector<int64_t> part = numbers(count);
        slice.cut(part);
        if (length == 0) {
          CHECK(part == std::vector<int64_t>{100});
          continue;
        }
        CHECK(static_cast<int64_t>(part.size()) == length);
        together.insert(together.end(), part.begin(), part.end());
      }
      CHECK(together == numbers(count));
      CHECK(most - least <= 1);
    }
  }
}

TEST_CASE("a process alone has all of a batch, an empty one too") {
  std::vector<int64_t> none;
  BatchSlice{}.cut(none);
  CHECK(none.empty());
  CHECK(BatchSlice{}.first(7) == 0);
  CHECK(BatchSlice{}.length(7) == 7);
}

/// Batches whose only example is their number; notes what it was asked for.
class Numbered : public BatchSource {
 public:
  explicit Numbered(bool is_in_order) : is_in_order_(is_in_order) {}
  const std::string& name() const override { return name_; }
  bool is_in_order() const override { return is_in_order_; }
  TakenBatch take(int64_t number, const InterruptCheck& interrupt) override {
    if (interrupt) interrupt();
    asked.push_back(number);
    return {.load =
                [this, number] {
                  loaded.push_back(number);
                  return Batch();
                },
            .state = [number] { return std::to_string(number); }};
  }

  std::vector<int64_t> asked;
  std::vector<int64_t> loaded;

 private:
  std::string name_ = "datasets/numbered";
  bool is_in_order_;
};

TEST_CASE("the batches that processes take in turn are together those of the source") {
  for (const int64_t processes : {1, 2, 3, 5}) {
    for (const int64_t first : {0, 1, 7}) {
      CAPTURE(processes);
      CAPTURE(first);
      std::vector<int64_t> together;
      std::vector<std::shared_ptr<Numbered>> sources;
      std::vector<EveryNthBatch> parts;
      for (int64_t rank = 0; rank < processes; ++rank) {
        sources.push_back(std::make_shared<Numbered>(/*is_in_order=*/false));
        parts.emplace_back(sources.back(), first, rank, processes);
      }
      for (int64_t number = 0; number < 4; ++number) {
        for (auto& part : parts) {
          together.push_back(std::stoll(part.take(number, {}).state()));
        }
      }
      std::vector<int64_t> all(static_cast<size_t>(4 * processes));
      std::iota(all.begin(), all.end(), first);
      CHECK(together == all);
    }
  }
}

TEST_CASE(
    "of a source in order all batches are taken one after another, and only one's own loaded") {
  const auto source = std::make_shared<Numbered>(/*is_in_order=*/true);
  EveryNthBatch second(source, /*first=*/4, /*rank=*/1, /*processes=*/3);
  CHECK(second.name() == "datasets/numbered");
  CHECK(second.is_in_order());
  for (int64_t number = 0; number < 3; ++number) second.take(number, {}).load();
  CHECK(source->asked == std::vector<int64_t>{4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(source->loaded == std::vector<int64_t>{5, 8, 11});
}

TEST_CASE("what interrupts the wait for a batch passes, also within those of others") {
  const auto source = std::make_shared<Numbered>(/*is_in_order=*/true);
  EveryNthBatch third(source, 0, /*rank=*/2, /*processes=*/3);
  int calls = 0;
  CHECK_THROWS_AS(third.take(0,
                             [&] {
                               if (++calls == 2) throw Interrupted("SIGTERM arrived", 143);
                             }),
                  Interrupted);
  CHECK(source->asked == std::vector<int64_t>{0});
  // Once more: nothing is left out, and nothing twice.
  CHECK(third.take(0, {}).state() == "2");
  CHECK(source->asked == std::vector<int64_t>{0, 1, 2});
}

}  // namespace batch_slice_test
}  // namespace stepop
