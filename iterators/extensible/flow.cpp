#include "iterators/extensible/flow.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/number_text.h"

namespace stepop::extensible {
namespace {

constexpr size_t kMostIntervals = 10;  ///< Different values of `every`: 2^10 kinds of iterations.

std::vector<const Gate*> gates_of(const std::vector<Step>& steps,
                                  const std::vector<const Part*>& behind) {
  std::vector<const Gate*> gates;
  for (const Part* part : behind) gates.push_back(&part->gate);
  for (const auto& step : steps) {
    gates.insert(gates.end(), {&step.gate, &step.update_gate});
    for (const auto& part : step.injectors) gates.push_back(&part.gate);
    for (const auto& part : step.losses) gates.push_back(&part.gate);
  }
  return gates;
}

/// The first number in [from, to) that each of `divisors` divides and none of `others`; -1 when no
/// number is found soon.
int64_t first_multiple(int64_t from, int64_t to, const std::vector<int64_t>& divisors,
                       const std::vector<int64_t>& others) {
  int64_t step = 1;
  for (const int64_t divisor : divisors) {
    const int64_t factor = divisor / std::gcd(step, divisor);
    if (factor > std::numeric_limits<int64_t>::max() / 2 / step) return -1;
    step *= factor;
  }
  const int64_t begin = from / step * step + (from % step == 0 ? 0 : step);
  for (int64_t tries = 0; tries < 1000; ++tries) {
    const int64_t number = begin + tries * step;
    if (number >= to || number < begin) return -1;
    const bool is_other = std::any_of(others.begin(), others.end(),
                                      [&](int64_t other) { return number % other == 0; });
    if (!is_other) return number;
  }
  return -1;
}

/// Simulates one iteration.
class Walk {
 public:
  Walk(const std::vector<Step>& steps, const Keys& keys, int64_t iteration, bool is_training,
       bool is_first_part)
      : steps_(steps),
        keys_(keys),
        iteration_(iteration),
        is_training_(is_training),
        is_first_part_(is_first_part),
        made_by_(keys.size()) {}

  void run(const std::vector<Slot>& given) {
    for (const Slot slot : given) made_by_[index(slot)] = "the batch";
    for (const auto& step : steps_) walk(step);
  }

  /// Checks the reads of `parts`, which run after all steps.
  void read_behind(const std::vector<const Part*>& parts) const {
    for (const Part* part : parts) {
      if (!part->gate.is_open(iteration_)) continue;
      for (const auto& use : part->reads) {
        if (!has(use.slot)) fail_missing(use);
      }
    }
  }

 private:
  static size_t index(Slot slot) { return static_cast<size_t>(slot.index); }
  bool has(Slot slot) const { return !made_by_[index(slot)].empty(); }

  bool has_all(const std::vector<Ports::Use>& reads) const {
    return std::all_of(reads.begin(), reads.end(), [&](const auto& use) { return has(use.slot); });
  }

  void walk(const Step& step) {
    if (!step.is_on(iteration_)) return;
    if (!std::all_of(step.requires_.begin(), step.requires_.end(),
                     [&](Slot slot) { return has(slot); })) {
      return;
    }
    const bool trains = is_training_ && iteration_ % step.gate.every == 0;
    std::vector<Slot> made;
    for (const auto& part : step.injectors) {
      if (!part.is_for(trains)) continue;
      if (part.no_accum && !is_first_part_) continue;
      if (part.gate.is_open(iteration_)) walk(part, made);
    }
    for (const auto& part : step.losses) {
      // A loss that is off is still computed if all its keys are there.
      if (!part.is_for(trains)) continue;
      if (trains && part.gate.is_open(iteration_)) {
        walk(part, made);
      } else if (has_all(part.reads)) {
        write(part, made);
      }
    }
    if (!step.outputs) return;
    for (const Slot slot : made) {
      const bool is_output =
          std::find(step.outputs->begin(), step.outputs->end(), slot) != step.outputs->end();
      if (!is_output) made_by_[index(slot)].clear();
    }
  }

  void walk(const Part& part, std::vector<Slot>& made) {
    for (const auto& use : part.reads) {
      if (!has(use.slot)) fail_missing(use);
    }
    write(part, made);
  }

  void write(const Part& part, std::vector<Slot>& made) {
    for (const auto& use : part.writes) {
      std::string& by = made_by_[index(use.slot)];
      if (!by.empty()) {
        throw UsageError(
            fmt::format("{}: \"{}\" is made twice in {}: first by {}; give one of "
                        "them another name",
                        use.place, keys_.name(use.slot), when(), by));
      }
      by = part.place;
      made.push_back(use.slot);
    }
  }

  std::string when() const {
    return fmt::format("{} {}{}", is_training_ ? "iteration" : "an evaluation at iteration",
                       with_thousands(iteration_),
                       is_first_part_ ? "" : ", in the second part of its batch,");
  }

  [[noreturn]] void fail_missing(const Ports::Use& use) const {
    const std::string& name = keys_.name(use.slot);
    std::vector<std::string> makers;
    for (const auto& step : steps_) {
      const auto look = [&](const Part& part) {
        for (const auto& made : part.writes) {
          if (made.slot == use.slot) makers.push_back(part.place);
        }
      };
      for (const auto& part : step.injectors) look(part);
      for (const auto& part : step.losses) look(part);
    }
    std::vector<std::string> there;
    for (size_t i = 0; i < made_by_.size(); ++i) {
      if (!made_by_[i].empty()) there.push_back(keys_.name({static_cast<int32_t>(i)}));
    }
    const std::string list = fmt::format("{}", fmt::join(there, ", "));
    if (!makers.empty()) {
      throw UsageError(fmt::format(
          "{}: in {} nothing has made \"{}\" before: it is made by {}, which comes later, or is "
          "off then; there are: {}",
          use.place, when(), name, fmt::join(makers, "; "), list));
    }
    const auto near = nearest_names(name, there, 1);
    throw UsageError(fmt::format("{}: nothing makes \"{}\"; there are: {}{}", use.place, name, list,
                                 near.empty() ? "" : "; did you mean " + near[0] + "?"));
  }

  const std::vector<Step>& steps_;
  const Keys& keys_;
  int64_t iteration_;
  bool is_training_;
  bool is_first_part_;
  std::vector<std::string> made_by_;  ///< By slot, the part that made the key; empty: no part has.
};

/// Checks that a step makes the keys that its `step_outputs` names.
void check_outputs(const Step& step, const Keys& keys) {
  if (!step.outputs) return;
  std::set<int32_t> made;
  std::vector<std::string> names;
  const auto look = [&](const Part& part) {
    for (const auto& use : part.writes) {
      if (made.insert(use.slot.index).second) names.push_back(keys.name(use.slot));
    }
  };
  for (const auto& part : step.injectors) look(part);
  for (const auto& part : step.losses) look(part);
  for (const Slot slot : *step.outputs) {
    if (made.contains(slot.index)) continue;
    throw UsageError(fmt::format(
        "{}: step_outputs: the step does not make \"{}\"; it makes: {}", step.place,
        keys.name(slot), names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "))));
  }
}

}  // namespace

std::vector<int64_t> kinds_of_iterations(const std::vector<Step>& steps,
                                         const std::vector<const Part*>& behind, int64_t first) {
  std::set<int64_t> edges = {first};
  std::set<int64_t> every;
  for (const auto& step : steps) edges.insert(step.trained_from);
  for (const Gate* gate : gates_of(steps, behind)) {
    edges.insert(gate->after);
    if (gate->before < std::numeric_limits<int64_t>::max()) edges.insert(gate->before + 1);
    if (gate->every > 1) every.insert(gate->every);
  }
  edges.erase(edges.begin(), edges.find(first));
  if (every.size() > kMostIntervals) {
    throw UsageError(fmt::format("steps: expected {} different values of every at most, found {}",
                                 kMostIntervals, every.size()));
  }
  const std::vector<int64_t> intervals(every.begin(), every.end());
  std::vector<int64_t> kinds;
  for (auto edge = edges.begin(); edge != edges.end(); ++edge) {
    const auto next = std::next(edge);
    const int64_t end = next == edges.end() ? std::numeric_limits<int64_t>::max() : *next;
    for (size_t set = 0; set < size_t{1} << intervals.size(); ++set) {
      std::vector<int64_t> in;
      std::vector<int64_t> out;
      for (size_t i = 0; i < intervals.size(); ++i) {
        ((set >> i & 1) != 0 ? in : out).push_back(intervals[i]);
      }
      const int64_t found = first_multiple(*edge, end, in, out);
      if (found >= 0) kinds.push_back(found);
    }
  }
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

void check_flow(const std::vector<Step>& steps, const std::vector<const Part*>& behind,
                const Keys& keys, const std::vector<Slot>& given, bool is_training, bool has_parts,
                int64_t first) {
  for (const auto& step : steps) check_outputs(step, keys);
  for (const int64_t iteration : kinds_of_iterations(steps, behind, first)) {
    if (is_training) {
      Walk(steps, keys, iteration, /*is_training=*/true, /*is_first_part=*/true).run(given);
    }
    if (is_training && has_parts) {
      Walk(steps, keys, iteration, /*is_training=*/true, /*is_first_part=*/false).run(given);
    }
    Walk evaluation(steps, keys, iteration, /*is_training=*/false, /*is_first_part=*/true);
    evaluation.run(given);
    evaluation.read_behind(behind);
  }
}

void plan_memory(std::vector<Step>& steps, const std::vector<Slot>& kept) {
  std::set<int32_t> needed;  // read after the current part
  for (const Slot slot : kept) needed.insert(slot.index);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::set<int32_t> needed_later = needed;
    std::set<int32_t> written;
    const auto look = [&](Part& part) {
      part.frees.clear();
      const auto free_after = [&](const Ports::Use& use) {
        if (needed.insert(use.slot.index).second) part.frees.push_back(use.slot);
      };
      for (const auto& use : part.writes) {
        written.insert(use.slot.index);
        free_after(use);
      }
      for (const auto& use : part.reads) free_after(use);
    };
    for (auto part = step->losses.rbegin(); part != step->losses.rend(); ++part) look(*part);
    for (auto part = step->injectors.rbegin(); part != step->injectors.rend(); ++part) look(*part);
    for (const Slot slot : step->requires_) needed.insert(slot.index);
    step->hands_on.clear();
    for (const int32_t index : written) {
      if (needed_later.contains(index)) step->hands_on.push_back({index});
    }
  }
}

}  // namespace stepop::extensible
