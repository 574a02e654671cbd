#include "runtime/data/stream_batches.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/data/load_watch.h"

namespace stepop {

std::vector<int64_t> RunningNumbers::indices(int64_t epoch, int64_t first, int64_t count) const {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), epoch * per_epoch_ + first);
  return numbers;
}

/// The records of one batch, to be decoded.
struct StreamBatches::Work {
  std::shared_ptr<const Stream> stream;
  std::shared_ptr<SkippedRecords> skipped;
  bool is_one_pass;
  std::vector<Record> records;
  std::vector<int64_t> indices;
  std::vector<Random> randoms;

  Batch load() {
    std::vector<Example> examples(records.size());
    std::vector<size_t> damaged;
    std::string last;
    const LoadWatch::Scope within(nullptr);
    LoadWatch* const watch = within.outer();
    for (size_t i = 0; i < records.size(); ++i) {
      if (watch != nullptr) {
        watch->begin(fmt::format("example {}: {}", indices[i], records[i].name));
      }
      try {
        examples[i] = stream->decode(records[i], randoms[i]);
        continue;
      } catch (const Interrupted&) {
        throw;
      } catch (...) {
        last = fmt::format("{}: {}", records[i].name, text_of_current_exception());
      }
      if (!skipped) throw Error(fmt::format("example {}: {}{}", indices[i], last, remedy()));
      damaged.push_back(i);
      skipped->add(last);
    }
    records.clear();
    replace(examples, damaged, last);
    std::vector<int64_t> numbers = indices;
    Batch batch = stream->collate(examples, numbers);
    if (!batch.contains("index")) {
      at::Tensor index = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
      std::copy(indices.begin(), indices.end(), index.mutable_data_ptr<int64_t>());
      batch.set("index", std::move(index));
    }
    batch.set_indices(std::move(indices));
    return batch;
  }

  const char* remedy() const {
    return is_one_pass ? ""
                       : "; on_damage: skip in the config of the stream leaves damaged records out";
  }

  /// Replaces damaged examples by the nearest good examples of the batch, so that the batch keeps
  /// its size.
  void replace(std::vector<Example>& examples, const std::vector<size_t>& damaged,
               const std::string& last) {
    if (damaged.size() == examples.size()) {
      throw Error(fmt::format("every example of a batch of {} is damaged; the last one: {}",
                              examples.size(), last));
    }
    const auto is_damaged = [&](size_t i) {
      return std::find(damaged.begin(), damaged.end(), i) != damaged.end();
    };
    for (const size_t i : damaged) {
      size_t distance = 1;
      while ((i < distance || is_damaged(i - distance)) &&
             (i + distance >= examples.size() || is_damaged(i + distance))) {
        ++distance;
      }
      const bool is_before = i >= distance && !is_damaged(i - distance);
      const size_t good = is_before ? i - distance : i + distance;
      examples[i] = examples[good];
      indices[i] = indices[good];
    }
  }
};

StreamBatches::StreamBatches(const StreamDataset& dataset, const BatchOrder& order,
                             SequenceOptions sequence, SourceStart start, BatchSlice slice)
    : order_(order),
      start_(std::move(start)),
      slice_(slice),
      stream_(dataset.open()),
      skipped_(dataset.settings().skips_damaged && !sequence.is_one_pass ? dataset.skipped()
                                                                         : nullptr),
      is_one_pass_(sequence.is_one_pass),
      sequence_(
          *stream_, sequence, start_.batch / order.batches_per_epoch(),
          start_.batch / order.batches_per_epoch() * order.indices(order.batches_per_epoch())[0]) {}

void StreamBatches::begin(const InterruptCheck& interrupt) {
  has_begun_ = true;
  if (start_.state.empty()) return;
  sequence_.load(start_.state, interrupt);
  // The last examples of an epoch, which drop_last leaves out, must still be read. Any other
  // distance comes from epochs of another length: the stream continues where it was.
  const int64_t first = order_.indices(start_.batch)[0];
  const int64_t left_out = first - sequence_.number();
  if (left_out < 0 || left_out >= order_.batch_size()) sequence_.set_number(first);
}

std::vector<Record> StreamBatches::read(int64_t number, const InterruptCheck& interrupt) {
  if (!has_begun_) begin(interrupt);
  std::vector<Record> records;
  for (const int64_t index : order_.indices(number)) {
    if (index < sequence_.number()) {
      throw Error(
          fmt::format("a bug of stepop: batch {} of a stream was taken out of order", number));
    }
    std::optional<Record> record;
    do {
      record = sequence_.next(interrupt);
      if (!record) {
        throw Error(
            fmt::format("a pass of the stream ends after {}; expected {}. Correct "
                        "\"examples\" in its config, or leave it out to have them counted",
                        counted(sequence_.number(), "example"),
                        with_thousands(order_.examples_in(order_.batches_per_epoch()))));
      }
    } while (sequence_.number() <= index);
    records.push_back(std::move(*record));
  }
  return records;
}

TakenBatch StreamBatches::take(int64_t number, const InterruptCheck& interrupt) {
  auto work = std::make_shared<Work>(Work{.stream = stream_,
                                          .skipped = skipped_,
                                          .is_one_pass = is_one_pass_,
                                          .records = read(number, interrupt),
                                          .indices = order_.indices(number),
                                          .randoms = order_.randoms(number)});
  slice_.cut(work->records);
  slice_.cut(work->indices);
  slice_.cut(work->randoms);
  TakenBatch taken{.load = [work] { return work->load(); }};
  if (!is_one_pass_) taken.state = sequence_.state();
  return taken;
}

std::vector<std::string> StreamBatches::names(int64_t number, const InterruptCheck& interrupt) {
  std::vector<std::string> names;
  for (const Record& record : read(number, interrupt)) names.push_back(record.name);
  return names;
}

}  // namespace stepop
