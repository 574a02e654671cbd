#include "runtime/checkpoint/tracker.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

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

void Tracker::add(const std::string& name, Save save, Load load) {
  if (name.empty() || name.find('.') != std::string::npos) {
    throw Error(fmt::format("cannot track \"{}\": a name is not empty and has no dot", name));
  }
  for (const auto& entry : entries_) {
    if (entry.name == name) {
      throw Error(fmt::format("\"{}\" is tracked twice; give the second another name", name));
    }
  }
  entries_.push_back({name, std::move(save), std::move(load)});
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

void Tracker::load(const State& state) const {
  std::vector<std::string> strangers;
  for (const auto& [key, tensor] : state) {
    const std::string owner = key.substr(0, key.find('.'));
    const bool is_known = std::any_of(entries_.begin(), entries_.end(),
                                      [&](const Entry& entry) { return entry.name == owner; });
    const bool is_seen = !strangers.empty() && strangers.back() == owner;
    if (!is_known && !is_seen) strangers.push_back(owner);
  }
  if (!strangers.empty()) {
    std::string list;
    for (const auto& stranger : strangers) list += (list.empty() ? "" : ", ") + stranger;
    throw Error(fmt::format("it holds what this run does not track: {}. {}", list, kHowToFit));
  }
  for (const auto& entry : entries_) load(entry.name, state);
}

void Tracker::load(const std::string& name, const State& state) const {
  entry(name).load(part_of(state, name));
}

std::vector<std::string> Tracker::names() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) names.push_back(entry.name);
  return names;
}

}  // namespace stepop
