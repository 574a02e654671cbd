#include "runtime/train/checkpoint/tracker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

/// The tensors of `state` below `name`, without their prefix.
State part_of(const State& state, const std::string& name) {
  State part;
  const std::string prefix = name + ".";
  for (auto it = state.lower_bound(prefix); it != state.end() && it->first.starts_with(prefix);
       ++it) {
    part.emplace(it->first.substr(prefix.size()), it->second);
  }
  return part;
}

}  // namespace

Tracker::Prefix::Prefix(Tracker& tracker, std::string prefix)
    : tracker_(tracker), before_(std::exchange(tracker.prefix_, std::move(prefix))) {}

void Tracker::add(const std::string& name, Save save, Load load) {
  if (name.empty() || name.find('.') != std::string::npos) {
    throw Error(
        fmt::format("cannot track \"{}\": a name must not be empty or contain a dot", name));
  }
  const std::string full = prefix_ + name;
  if (is_tracked(full)) {
    throw Error(fmt::format("\"{}\" is tracked twice; give the second another name", full));
  }
  entries_.push_back({full, std::move(save), std::move(load)});
}

void Tracker::add_network(const std::string& name, Save save, Load load) {
  add(name, std::move(save), std::move(load));
  entries_.back().is_network = true;
}

const Tracker::Entry& Tracker::entry(const std::string& name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  if (found == entries_.end()) throw Error(fmt::format("nothing is tracked as \"{}\"", name));
  return *found;
}

State Tracker::save() const {
  State state;
  for (const auto& entry : entries_) {
    for (auto& [key, tensor] : entry.save()) state.emplace(entry.name + "." + key, tensor);
  }
  return state;
}

State Tracker::save(const std::string& name) const { return entry(name).save(); }

bool Tracker::is_tracked(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.name == name; });
}

std::vector<std::string> Tracker::load(const State& state) const {
  std::vector<std::string> strangers;
  std::vector<std::string> of_hooks;
  for (const auto& [key, tensor] : state) {
    const std::string owner = key.substr(0, key.find('.'));
    if (is_tracked(owner)) continue;
    auto& list = owner.starts_with(kHooksPrefix) ? of_hooks : strangers;
    if (list.empty() || list.back() != owner) list.push_back(owner);
  }
  if (!strangers.empty()) {
    throw Error(fmt::format("it holds what this run does not track: {}. {}",
                            fmt::join(strangers, ", "), kHowToFit));
  }
  for (const auto& entry : entries_) {
    const State part = part_of(state, entry.name);
    if (part.empty() && entry.name.starts_with(kHooksPrefix)) {
      of_hooks.push_back(entry.name);
    } else {
      entry.load(part);
    }
  }
  return of_hooks;
}

void Tracker::load(const std::string& name, const State& state) const {
  entry(name).load(part_of(state, name));
}

std::vector<std::string> Tracker::networks() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) {
    if (entry.is_network) names.push_back(entry.name);
  }
  return names;
}

std::vector<std::string> Tracker::names() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) names.push_back(entry.name);
  return names;
}

}  // namespace stepop
