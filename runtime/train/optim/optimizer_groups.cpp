// The parameters of an optimizer: their names, and the groups with values of their own.

#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/config/read_pattern.h"
#include "runtime/train/optim/optimizer.h"

namespace stepop {
namespace {

constexpr size_t kNoGroup = std::numeric_limits<size_t>::max();

/// The parameters without repeated tensors, which tied weights cause.
NamedParameters check_parameters(NamedParameters parameters) {
  if (parameters.empty()) {
    throw Error("an optimizer was given no parameters: does the network have any?");
  }
  NamedParameters unique;
  unique.networks = std::move(parameters.networks);
  std::set<std::string> names;
  std::set<const void*> tensors;
  for (auto& [name, tensor] : parameters) {
    if (!names.insert(name).second) {
      throw Error(
          fmt::format("an optimizer was given two parameters of the name \"{}\": give the "
                      "networks' parameters different prefixes",
                      name));
    }
    if (!tensor.defined()) throw Error(fmt::format("parameter \"{}\" is undefined", name));
    if (!tensor.is_floating_point()) {
      throw Error(
          fmt::format("parameter \"{}\" is of type {}; only floating-point numbers can be "
                      "optimised: {}",
                      name, c10::toString(tensor.scalar_type()),
                      tensor.is_complex() ? "keep torch::view_as_real of it, and compute with "
                                            "torch::view_as_complex"
                                          : "make it a buffer"));
    }
    if (!tensor.is_leaf()) {
      throw Error(
          fmt::format("parameter \"{}\" was computed from other tensors and gets no gradient "
                      "of its own: give the tensors that it was computed from, or detach() it",
                      name));
    }
    if (!tensors.insert(tensor.unsafeGetTensorImpl()).second) continue;
    unique.emplace_back(std::move(name), std::move(tensor));
  }
  return unique;
}

}  // namespace

std::vector<std::string> NamedParameters::other_names() const {
  std::vector<std::string> others;
  for (const auto& [name, tensor] : *this) {
    if (networks.size() == 1) {
      others.push_back(networks.front() + "." + name);
      continue;
    }
    const auto of = std::ranges::find_if(
        networks, [&](const auto& network) { return name.starts_with(network + "."); });
    others.push_back(of == networks.end() ? name : name.substr(of->size() + 1));
  }
  return others;
}

std::string list_names(const NamedParameters& parameters) {
  std::vector<std::pair<const void*, std::vector<std::string>>> names_of;
  for (const auto& [name, tensor] : parameters) {
    const void* identity = tensor.unsafeGetTensorImpl();
    auto known = std::ranges::find(names_of, identity, [](const auto& one) { return one.first; });
    if (known == names_of.end()) known = names_of.insert(known, {identity, {}});
    known->second.push_back(name);
  }
  std::vector<std::string> texts;
  for (const auto& [identity, names] : names_of) texts.push_back(tied_text(names));
  return list_text(texts);
}

std::string tied_text(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  const std::vector<std::string> others(names.begin() + 1, names.end());
  return fmt::format("{} (also {})", names.front(), fmt::join(others, ", "));
}

Optimizer::Optimizer(const Config& config, NamedParameters parameters, Traits traits)
    : parameters_(check_parameters(parameters)), traits_(std::move(traits)) {
  read_groups(config, parameters);
}

/// The elements of `groups`.
std::vector<Config> Optimizer::places_of_groups(const Config& config) {
  if (!config.has("groups")) return {};
  const Value& groups = *config.peek("groups");
  if (!groups.is_list()) {
    throw config.error("groups", fmt::format("expected a list of {{match: REGEX, lr: ..., "
                                             "weight_decay: ...}}, found {}",
                                             groups.describe()));
  }
  std::vector<Config> places;
  for (size_t i = 0; i < groups.as_list().size(); ++i) {
    places.push_back(config.at(fmt::format("groups/{}", i)));
  }
  return places;
}

/// The first group whose `match` has a name of each parameter, or kNoGroup; `all` has tied tensors
/// under each of their names.
std::vector<size_t> Optimizer::matching_groups(const std::vector<Config>& places,
                                               const NamedParameters& all) const {
  std::map<const void*, size_t> positions;
  for (const auto& [name, tensor] : parameters_) {
    positions.emplace(tensor.unsafeGetTensorImpl(), positions.size());
  }
  std::vector<std::string> names;
  for (const auto& [name, tensor] : all) names.push_back(name);
  const std::vector<std::string> others = all.other_names();
  std::vector<size_t> group_of(parameters_.size(), kNoGroup);
  for (size_t i = 0; i < places.size(); ++i) {
    for (const NamePattern& pattern : read_patterns(places[i], "match")) {
      for (const size_t found : find_names(pattern, names, others)) {
        size_t& group = group_of[positions.at(all[found].second.unsafeGetTensorImpl())];
        group = std::min(group, i);
      }
    }
  }
  return group_of;
}

/// `all` has tied tensors under each of their names.
void Optimizer::read_groups(const Config& config, const NamedParameters& all) {
  const auto read_group = [&](const Config& place, const Scheduled& lr, const Scheduled& decay,
                              const std::optional<Scheduled>& adamw_lr) {
    Group group = {place.has("lr") ? Scheduled(place, "lr") : lr,
                   place.has("weight_decay") ? Scheduled(place, "weight_decay") : decay,
                   adamw_lr,
                   {},
                   {},
                   {}};
    if (traits_.reads_adapt && place.has("adapt")) group.adapt = place.get<bool>("adapt");
    if (traits_.adamw_lr && place.has("adamw_lr")) group.adamw_lr = Scheduled(place, "adamw_lr");
    group.lr.at_least(0, place, "lr");
    group.weight_decay.at_least(0, place, "weight_decay");
    if (group.adamw_lr) group.adamw_lr->at_least(0, place, "adamw_lr");
    return group;
  };
  std::optional<Scheduled> adamw_lr;
  if (traits_.adamw_lr) adamw_lr = Scheduled(config, "adamw_lr", *traits_.adamw_lr);
  Group rest = read_group(config, Scheduled(config, "lr", traits_.lr),
                          Scheduled(config, "weight_decay", traits_.weight_decay), adamw_lr);

  const std::vector<Config> places = places_of_groups(config);
  for (const Config& place : places) {
    groups_.push_back(read_group(place, rest.lr, rest.weight_decay, rest.adamw_lr));
  }
  groups_.push_back(std::move(rest));

  const std::vector<size_t> group_of = matching_groups(places, all);
  for (size_t position = 0; position < parameters_.size(); ++position) {
    add_parameter(groups_[std::min(group_of[position], groups_.size() - 1)], position);
  }
  for (size_t i = 0; i + 1 < groups_.size(); ++i) {
    if (!groups_[i].buckets.empty()) continue;
    throw places[i].error(
        "match", fmt::format("{} matches no parameter{}; the parameters are: {}",
                             places[i].peek("match")->describe(),
                             i == 0 ? "" : " that an earlier group leaves", list_names(all)));
  }
}

void Optimizer::add_parameter(Group& group, size_t position) {
  const at::Tensor& parameter = parameters_[position].second;
  auto place = std::find_if(group.buckets.begin(), group.buckets.end(), [&](const Bucket& bucket) {
    const at::Tensor& other = bucket.parameters.front();
    return other.device() == parameter.device() && other.scalar_type() == parameter.scalar_type();
  });
  if (place == group.buckets.end()) {
    place = group.buckets.emplace(place);
    place->slots.resize(traits_.slots.size());
    place->adapt = group.adapt;
    group.members.emplace_back();
  }
  group.members[static_cast<size_t>(place - group.buckets.begin())].push_back(position);
  place->parameters.push_back(parameter);
  place->steps.push_back(at::zeros({}, at::TensorOptions(at::kFloat).device(parameter.device())));
  place->is_first.push_back(1);
  place->is_own.push_back(1);
}

}  // namespace stepop
