#include "runtime/train/checkpoint/shared_state.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/system/checksum.h"
#include "runtime/train/checkpoint/state_bytes.h"

namespace stepop {
namespace {

constexpr std::string_view kRank = "rank_";

std::string owner_of(const std::string& name) { return name.substr(0, name.find('.')); }

std::string prefix_of(int rank) { return fmt::format("{}{}/", kRank, rank); }

/// Whether a name belongs to a process other than rank 0.
bool is_of_other(const std::string& name) {
  const size_t slash = name.find('/');
  return name.starts_with(kRank) && slash != std::string::npos &&
         name.find_first_not_of("0123456789", kRank.size()) == slash;
}

std::string digest(const at::Tensor& tensor) {
  if (!tensor.defined()) return "";
  const at::Tensor bytes = tensor.detach().cpu().contiguous();
  Checksum sum;
  sum.add({static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
  return fmt::format("{} {} {}", sum.text(), static_cast<int>(tensor.scalar_type()),
                     fmt::join(tensor.sizes(), ","));
}

}  // namespace

namespace {

/// What rank 0 takes from another process: all tensors of some tracked objects, and single tensors.
struct Wanted {
  std::set<std::string> owners;
  std::set<std::string> names;
};

Wanted wanted_of(const World& world, int rank, const nlohmann::json& own,
                 const nlohmann::json& theirs, const OfThing& must_agree,
                 const OfThing& is_in_parts) {
  Wanted wanted;
  const auto note = [&](const std::string& name) {
    const std::string owner = owner_of(name);
    if (must_agree(owner)) {
      throw Error(fmt::format(
          "\"{}\" is not the same in {} as in {}: what trains it, or writes to it, does so only "
          "in some processes, or depends on a value that is not shared",
          name, world.describe(rank), world.describe(0)));
    }
    wanted.owners.insert(owner);
  };
  const auto may_be_alone = [&](const std::string& name) {
    return is_in_parts && is_in_parts(owner_of(name));
  };
  for (const auto& [name, value] : theirs.items()) {
    if (!own.contains(name) && may_be_alone(name)) {
      wanted.names.insert(name);
    } else if (!own.contains(name) || own[name] != value) {
      note(name);
    }
  }
  for (const auto& [name, value] : own.items()) {
    if (!theirs.contains(name) && !may_be_alone(name)) note(name);
  }
  return wanted;
}

}  // namespace

State gathered_state(World& world, const State& own, const OfThing& must_agree,
                     const OfThing& is_in_parts) {
  if (world.is_alone()) return own;
  nlohmann::json digests = nlohmann::json::object();
  for (const auto& [name, tensor] : own) digests[name] = digest(tensor);
  const std::vector<std::string> all = world.gather_bytes_at_root(write_json(digests));

  nlohmann::json asked = nlohmann::json::array();
  if (world.is_root()) {
    for (int rank = 0; rank < world.size(); ++rank) {
      const auto theirs = read_json(all[static_cast<size_t>(rank)]);
      const Wanted wanted = wanted_of(world, rank, digests, theirs, must_agree, is_in_parts);
      asked.push_back({{"owners", wanted.owners}, {"names", wanted.names}});
    }
  }
  asked = read_json(world.broadcast_text(write_json(asked)));
  const auto of_me = asked.at(static_cast<size_t>(world.rank()));
  const auto owners = of_me.at("owners").get<std::set<std::string>>();
  const auto names = of_me.at("names").get<std::set<std::string>>();
  State mine;
  for (const auto& [name, tensor] : own) {
    if (owners.contains(owner_of(name)) || names.contains(name)) mine[name] = tensor;
  }
  const std::vector<std::string> parts = world.gather_bytes_at_root(to_bytes(mine));
  State whole = own;
  for (size_t rank = 1; rank < parts.size(); ++rank) {
    const auto single = asked.at(rank).at("names").get<std::set<std::string>>();
    for (auto& [name, tensor] : state_from_bytes(parts[rank])) {
      whole[single.contains(name) ? name : prefix_of(static_cast<int>(rank)) + name] = tensor;
    }
  }
  return whole;
}

State state_of_rank(const State& whole, int rank) {
  const std::string prefix = prefix_of(rank);
  State state;
  std::set<std::string> own;  // tracked objects with this process's own state
  for (const auto& [name, tensor] : whole) {
    if (!name.starts_with(prefix)) continue;
    state[name.substr(prefix.size())] = tensor;
    own.insert(owner_of(name.substr(prefix.size())));
  }
  for (const auto& [name, tensor] : whole) {
    if (!is_of_other(name) && !own.contains(owner_of(name))) state[name] = tensor;
  }
  return state;
}

std::optional<Checkpoint> broadcast_checkpoint(World& world, std::optional<Checkpoint> checkpoint) {
  if (world.is_alone()) return checkpoint;
  nlohmann::json about;
  if (checkpoint) {
    about = {{"progress", checkpoint->progress.to_json()},
             {"config", checkpoint->config},
             {"made_by", checkpoint->made_by},
             {"checksum", checkpoint->checksum}};
  }
  about = read_json(world.broadcast_text(write_json(about)));
  if (about.is_null()) return std::nullopt;
  const std::string tensors =
      world.broadcast_text(world.is_root() ? to_bytes(checkpoint->tensors) : "");
  if (world.is_root()) return checkpoint;
  return Checkpoint{.tensors = state_from_bytes(tensors),
                    .progress = Progress::from_json(about.at("progress").get<std::string>()),
                    .config = about.at("config").get<std::string>(),
                    .made_by = about.at("made_by").get<std::string>(),
                    .checksum = about.at("checksum").get<std::string>()};
}

}  // namespace stepop
