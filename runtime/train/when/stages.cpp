#include "runtime/train/when/stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/train/when/duration.h"

namespace stepop {
namespace {

constexpr const char* kStagesExample =
    "[{train_ops: [train/train_op/critic], for: 5}, {train_ops: [train/train_op/generator], for: "
    "1}]";

}  // namespace

Turn::Span Turn::next(int64_t step) const {
  const int64_t start = cycle > 0 ? step - step % cycle : 0;  // where the current cycle starts
  const auto turn_from = [&](int64_t first) {
    const int64_t end = length < kForever - first ? first + length : kForever;
    return Span{std::max(first, step), end};
  };
  const Span now = turn_from(start + begin);
  if (now.begin < now.end) return now;
  return cycle > 0 ? turn_from(start + cycle + begin) : Span{};
}

std::vector<Turn> read_turns(const Config& config, int64_t steps_per_epoch) {
  if (!config.has("stages")) return {};
  const Value* list = config.peek("stages");
  if (!list->is_list() || list->as_list().empty()) {
    throw config.error("stages", fmt::format("expected a list of stages, such as {}, found {}",
                                             kStagesExample, list->describe()));
  }
  if (config.has("train_ops")) {
    throw config.error("train_ops", "each of the stages has train ops of its own: leave this out");
  }
  std::vector<Turn> turns;
  int64_t begin = 0;
  const size_t count = list->as_list().size();
  for (size_t i = 0; i < count; ++i) {
    const std::string path = fmt::format("stages/{}", i);
    const Value& item = list->as_list()[i];
    if (!item.is_map()) {
      throw config.error(path, fmt::format("expected a stage, such as {{train_ops: "
                                           "[train/train_op], for: 2e}}, found {}",
                                           item.describe()));
    }
    const Config stage = config.at(path);
    if (stage.has("for")) {
      turns.push_back({begin, read_steps(stage, "for", steps_per_epoch,
                                         "what a training does may not depend on the clock")});
      begin += turns.back().length;
    } else if (i + 1 == count) {
      turns.push_back({begin});
    } else {
      throw stage.error("for", "missing: only the last stage may last to the end");
    }
  }
  const bool is_cyclic = turns.back().length < Turn::kForever;
  for (Turn& turn : turns) turn.cycle = is_cyclic ? begin : 0;
  return turns;
}

}  // namespace stepop
