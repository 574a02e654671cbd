#include "runtime/tools/reproduce/start_chain.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "runtime/core/value/value.h"
#include "runtime/tools/code/code_copy.h"
#include "runtime/train/keys/own_keys.h"

namespace stepop {
namespace {

/// A config without the keys that do not affect a training's bits.
Value for_bits(Value config) {
  if (!config.is_map()) return config;
  for (const auto& key : top_keys_with(kSameBits)) config.as_map().erase(key);
  return config;
}

/// Whether the start used no checkpoint of its own run.
bool begins_elsewhere(const KnownStart& start) {
  if (!start.record) return false;
  const std::string& from = start.record->checkpoint;
  return from.empty() || from.starts_with('/');
}

/// Whether both starts trained with the same config and the same copy of the user's code.
bool are_alike(const std::string& root, const KnownStart& a, const KnownStart& b) {
  return for_bits(a.config) == for_bits(b.config) &&
         CodeCopy(root, a.time).folder() == CodeCopy(root, b.time).folder();
}

}  // namespace

std::vector<ChainedStart> chain_of_trainings(const std::string& root,
                                             const std::vector<KnownStart>& trainings,
                                             std::vector<std::string>& problems) {
  std::vector<ChainedStart> chain;
  for (const auto& start : trainings) {
    if (!start.problem.empty()) {
      problems.push_back(fmt::format("the config of the start at {} cannot be read: {}", start.time,
                                     start.problem));
      continue;
    }
    if (chain.empty() || begins_elsewhere(start)) {
      chain.clear();
      chain.push_back({&start, start.step.value_or(0)});
      continue;
    }
    while (start.step && chain.size() > 1 && chain.back().begin >= *start.step) chain.pop_back();
    if (are_alike(root, start, *chain.back().start)) {
      chain.back().also.push_back(start.time);
      continue;
    }
    if (!start.step) {
      problems.push_back(
          fmt::format("at which step the start at {} changed the config is not known: below, the "
                      "training before it comes to its end first",
                      start.time));
    }
    chain.push_back({&start, start.step.value_or(-1)});
  }
  return chain;
}

}  // namespace stepop
