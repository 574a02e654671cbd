#include "runtime/data/stream_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/base/number_text.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

constexpr int64_t kDefaultBuffer = 1000;
/// The limit is low because each cursor may read ahead.
constexpr size_t kMostCursors = 8;
/// A count that takes longer, in seconds, is reported.
constexpr double kSlowCount = 2;
constexpr int64_t kMostBuffer = int64_t{1} << 30;

/// `shuffle: {buffer: 1000}`, or `shuffle: false`.
void read_shuffle(const Config& params, StreamSettings& settings) {
  const Value* shuffle = params.peek("shuffle");
  if (shuffle != nullptr && shuffle->is_bool()) {
    settings.shuffles = params.get<bool>("shuffle");
    settings.buffer = settings.shuffles ? kDefaultBuffer : 1;
  } else if (shuffle != nullptr && !shuffle->is_null() && !shuffle->is_map()) {
    throw params.error("shuffle", fmt::format("expected true, false or {{buffer: {}}}, found {}",
                                              kDefaultBuffer, shuffle->describe()));
  } else {
    settings.buffer = params.get_between("shuffle/buffer", 1, kMostBuffer, kDefaultBuffer);
  }
}

}  // namespace

void StreamSettings::declare(Parameters& p) {
  p.add("examples", examples,
        "how many there are in a pass; null: counted, where the stream can do that", at_least(1));
  const Config* config =
      p.describe({.name = "shuffle",
                  .default_value = "{buffer: 1000}",
                  .about = "in a training: records in memory, from which the next one is drawn; "
                           "false: the stored order",
                  .type = {.kind = "bool | map"}});
  if (config != nullptr) read_shuffle(*config, *this);
  std::string on_damage = "stop";
  p.add("on_damage", on_damage,
        "stop or skip: a training leaves damaged records out and counts them",
        one_of({"stop", "skip"}));
  skips_damaged = on_damage == "skip";
}

void SkippedRecords::add(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++count_;
  last_ = what;
}

std::string SkippedRecords::news() {
  const std::lock_guard lock(mutex_);
  if (count_ == known_) return "";
  known_ = count_;
  return fmt::format("{} damaged record{} skipped so far; the last one: {}", with_thousands(count_),
                     count_ == 1 ? " was" : "s were", last_);
}

bool register_stream(Registration registration, StreamFactory factory) {
  auto& parameters = registration.about.parameters;
  for (auto& shared : parameters_of<StreamSettings>()) parameters.push_back(std::move(shared));
  registration.about.summary += " A stream.";
  return datasets().add(std::move(registration), [factory](const Config& params) {
    return std::make_unique<StreamDataset>(params, factory);
  });
}

StreamDataset::StreamDataset(const Config& params, StreamFactory factory)
    : params_(params),
      factory_(std::move(factory)),
      settings_(read_parameters<StreamSettings>(params)),
      stream_(open()),
      examples_(settings_.examples) {
  is_counted_ = examples_.has_value();
}

std::shared_ptr<Stream> StreamDataset::open() const {
  std::shared_ptr<Stream> stream = factory_(params_);
  stream->count_skipped(skipped_);
  return stream;
}

std::optional<int64_t> StreamDataset::examples() const {
  const std::lock_guard lock(mutex_);
  if (!is_counted_) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    examples_ = open()->count(InterruptScope::current());
    seconds_ = std::chrono::duration<double>(Clock::now() - begin).count();
    is_counted_ = true;
  }
  return examples_;
}

std::string StreamDataset::notice() const {
  const std::lock_guard lock(mutex_);
  const auto* speaker = dynamic_cast<const StreamNotice*>(stream_.get());
  std::vector<std::string> notices = {speaker == nullptr ? "" : speaker->notice()};
  if (seconds_ >= kSlowCount && examples_) {
    notices.push_back(fmt::format(
        "it took {:.0f} s to count its examples; \"examples: {}\" in its config saves that",
        seconds_, *examples_));
  }
  return joined_notices(notices);
}

int64_t StreamDataset::size() const {
  if (const auto number = examples()) return *number;
  throw Error(
      "it is a stream that does not know how many examples it has: give their number as "
      "\"examples\" in its config");
}

Record StreamDataset::record(int64_t index) const {
  const std::lock_guard lock(mutex_);
  // The nearest cursor at or before the index.
  Cursor* best = nullptr;
  for (const auto& cursor : cursors_) {
    const int64_t number = cursor->sequence.number();
    if (number <= index && (best == nullptr || number > best->sequence.number())) {
      best = cursor.get();
    }
  }
  if (best == nullptr) {
    if (cursors_.size() >= kMostCursors) {
      cursors_.erase(
          std::min_element(cursors_.begin(), cursors_.end(),
                           [](const auto& a, const auto& b) { return a->used < b->used; }));
    }
    best = cursors_.emplace_back(std::make_unique<Cursor>(open())).get();
  }
  best->used = ++calls_;
  try {
    while (true) {
      const bool is_it = best->sequence.number() == index;
      auto next = best->sequence.next(InterruptScope::current());
      if (!next) {
        throw EndOfStream(fmt::format("there is no example {}: the stream has {}", index,
                                      best->sequence.number()));
      }
      if (is_it) return std::move(*next);
    }
  } catch (...) {
    std::erase_if(cursors_, [&](const auto& cursor) { return cursor.get() == best; });
    throw;
  }
}

Example StreamDataset::get(int64_t index, Random& random) const {
  const Record found = record(index);
  try {
    return stream_->decode(found, random);
  } catch (const Interrupted&) {
    throw;
  } catch (...) {
    throw Error(fmt::format("{}: {}", found.name, text_of_current_exception()));
  }
}

Batch StreamDataset::collate(const std::vector<Example>& examples,
                             std::vector<int64_t> indices) const {
  return stream_->collate(examples, std::move(indices));
}

}  // namespace stepop
