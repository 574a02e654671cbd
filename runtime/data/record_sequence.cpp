#include "runtime/data/record_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"

namespace stepop {
namespace {

/// The number of marks per length of the buffer. Marks this dense keep a resume from reading much
/// more than it must.
constexpr int64_t kMarksPerBuffer = 16;

/// Mixed into the seed that selects the next record from the buffer.
constexpr uint64_t kDraw = seed_of("buffer");

/// The limit for numbers in a state, far above any count of records.
constexpr int64_t kMostRecords = int64_t{1} << 60;

/// The state as it is written into a checkpoint.
struct Saved {
  int64_t pass = 0;
  int64_t number = 0;
  int64_t read = 0;   ///< The number of records of the pass that were read.
  int64_t place = 0;  ///< The number of records that were read before the stream's state was taken.
  std::string stream;
  std::vector<int64_t> held;  ///< The positions of the records in the buffer, in the buffer's
                              ///< order.

  std::string to_json() const {
    const nlohmann::ordered_json json = {{"pass", pass},   {"number", number}, {"read", read},
                                         {"place", place}, {"stream", stream}, {"held", held}};
    return write_json(json);
  }
};

Saved saved_of(const std::string& text) {
  Saved saved;
  try {
    const auto json = read_json(text);
    json.at("pass").get_to(saved.pass);
    json.at("number").get_to(saved.number);
    json.at("read").get_to(saved.read);
    json.at("place").get_to(saved.place);
    json.at("stream").get_to(saved.stream);
    json.at("held").get_to(saved.held);
  } catch (const std::exception& error) {
    throw Error(fmt::format("the place in the stream cannot be read: {}", error.what()));
  }
  std::vector<int64_t> sorted = saved.held;
  std::sort(sorted.begin(), sorted.end());
  const bool is_within =
      sorted.empty() || (sorted.front() >= saved.place && sorted.back() < saved.read);
  const bool has_twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (saved.pass < 0 || saved.number < 0 || saved.place < 0 || saved.place > saved.read ||
      std::max({saved.pass, saved.number, saved.read}) > kMostRecords || !is_within || has_twice) {
    throw Error("the place in the stream cannot be read: its numbers contradict each other");
  }
  return saved;
}

}  // namespace

RecordSequence::RecordSequence(Stream& stream, SequenceOptions options, int64_t first_pass,
                               int64_t first_number)
    : stream_(stream), options_(options), pass_(first_pass), number_(first_number) {}

void RecordSequence::begin_pass() {
  stream_.begin({pass_, options_.seed, options_.shuffles});
  has_begun_ = true;
  is_at_end_ = false;
  read_ = 0;
  marks_.clear();
}

std::optional<Record> RecordSequence::read(const InterruptCheck& interrupt) {
  const int64_t every = std::max<int64_t>(options_.buffer / kMarksPerBuffer, 1);
  if (options_.buffer > 1 && read_ % every == 0) marks_.push_back({read_, stream_.save()});
  std::optional<Record> record = stream_.next(interrupt);
  if (record) {
    ++read_;
  } else {
    is_at_end_ = true;
  }
  return record;
}

std::optional<Record> RecordSequence::next(const InterruptCheck& interrupt) {
  while (true) {
    if (!has_begun_) begin_pass();
    while (!is_at_end_ && static_cast<int64_t>(held_.size()) < options_.buffer) {
      const int64_t position = read_;
      if (auto record = read(interrupt)) held_.push_back({position, std::move(*record)});
    }
    if (!held_.empty()) break;
    if (read_ == 0) throw Error("the stream has no record, or its filter leaves none");
    if (options_.is_one_pass) return std::nullopt;
    ++pass_;
    has_begun_ = false;
  }
  size_t drawn = 0;
  if (options_.buffer > 1) {
    Random random(mix_seed({options_.seed, kDraw, static_cast<uint64_t>(number_)}));
    drawn = static_cast<size_t>(random.below(static_cast<int64_t>(held_.size())));
  }
  ++number_;
  std::swap(held_[drawn], held_.back());
  Record record = std::move(held_.back().record);
  held_.pop_back();
  return record;
}

std::function<std::string()> RecordSequence::state() {
  auto saved = std::make_shared<Saved>();
  saved->pass = pass_;
  saved->number = number_;
  if (!has_begun_) return [saved] { return saved->to_json(); };
  saved->read = saved->place = read_;
  if (held_.empty()) {
    saved->stream = stream_.save();
  } else {
    int64_t oldest = read_;
    saved->held.reserve(held_.size());
    for (const Held& held : held_) {
      oldest = std::min(oldest, held.position);
      saved->held.push_back(held.position);
    }
    while (marks_.size() > 1 && marks_[1].position <= oldest) marks_.pop_front();
    saved->place = marks_.front().position;
    saved->stream = marks_.front().state;
  }
  return [saved] { return saved->to_json(); };
}

void RecordSequence::load(const std::string& state, const InterruptCheck& interrupt) {
  const Saved saved = saved_of(state);
  pass_ = saved.pass;
  number_ = saved.number;
  held_.clear();
  begin_pass();
  if (saved.read == 0) return;
  stream_.load(saved.stream, interrupt);
  read_ = saved.place;
  marks_.push_back({saved.place, saved.stream});
  std::map<int64_t, size_t> slots;
  for (size_t i = 0; i < saved.held.size(); ++i) slots[saved.held[i]] = i;
  held_.resize(saved.held.size());
  while (read_ < saved.read) {
    const int64_t position = read_;
    auto record = read(interrupt);
    if (!record) {
      throw Error(fmt::format(
          "the stream has changed: pass {} ends after {} records, and {} of it were read before",
          pass_, read_, saved.read));
    }
    const auto slot = slots.find(position);
    if (slot != slots.end()) held_[slot->second] = {position, std::move(*record)};
  }
}

}  // namespace stepop
