#include "runtime/train/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>
#include <tuple>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/core/formats/safetensors_reader.h"
#include "runtime/core/value/value.h"

namespace stepop {
namespace {

using Metadata = std::map<std::string, std::string>;

constexpr const char* kFormat = "stepop-1";
constexpr const char* kMadeByKey = "made_by";
constexpr const char* kNetworksKey = "networks";
constexpr std::string_view kPrefix = "model-";
constexpr std::string_view kSuffix = ".safetensors";

std::string text_of(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->second;
}

/// Throws Error, without the path, unless the header belongs to a checkpoint.
Progress read_progress(const Metadata& metadata) {
  const auto format = metadata.find("format");
  if (format == metadata.end() || format->second != kFormat) {
    throw Error(fmt::format("not a checkpoint of stepop: its format is {}, expected \"{}\"",
                            format == metadata.end() ? "not given" : "\"" + format->second + "\"",
                            kFormat));
  }
  return Progress::from_json(text_of(metadata, "progress"));
}

/// Throws Error, without the path, unless the file is exactly as it was written.
void check_checksum(const SafetensorsReader& reader) {
  const auto given = reader.header().metadata.find(kChecksumKey);
  if (given == reader.header().metadata.end()) throw Error("damaged: it has no checksum");
  if (given->second == reader.checksum()) return;
  throw Error(fmt::format("damaged: its checksum is {}, its content gives {}", given->second,
                          reader.checksum()));
}

/// The tensors of a checkpoint. They are read by a function of its own, so that a program that only
/// verifies checkpoints has no use for LibTorch.
using ReadTensors = std::function<State(SafetensorsReader&)>;

State read_tensors(SafetensorsReader& reader) { return reader.read_tensors(); }

/// Undefined tensors, by their names.
State names_of(const SafetensorsReader& reader) {
  State tensors;
  for (const auto& entry : reader.header().entries) tensors[entry.name];
  return tensors;
}

/// The same; the data is only read for the checksum.
State read_names(SafetensorsReader& reader) {
  reader.skip_tensors();
  return names_of(reader);
}

/// Adds tied tensors, which the file has once.
template <class Tensors>
void add_tied(Tensors& tensors, const std::string& json) {
  Aliases aliases;
  try {
    read_json(json).get_to(aliases);
  } catch (const nlohmann::json::exception&) {
    throw Error("its aliases are not a map of names");
  }
  const Tensors stored = tensors;
  for (const auto& [name, first] : aliases) {
    const auto found = stored.find(first);
    if (found == stored.end()) {
      throw Error(fmt::format("tensor \"{}\" refers to \"{}\", which is not there", name, first));
    }
    if (!tensors.emplace(name, found->second).second) {
      throw Error(
          fmt::format("tensor \"{}\" is there twice, as itself and as \"{}\"", name, first));
    }
  }
}

/// Errors have no path.
Checkpoint read_whole(const std::string& path, const ReadTensors& read) {
  SafetensorsReader reader(path);
  const Metadata& metadata = reader.header().metadata;
  Checkpoint checkpoint;
  // A file without a checksum is more likely another program's file than a damaged checkpoint.
  if (!metadata.contains(kChecksumKey)) read_progress(metadata);
  checkpoint.tensors = read(reader);
  check_checksum(reader);
  checkpoint.checksum = reader.checksum();
  checkpoint.progress = read_progress(metadata);
  checkpoint.config = text_of(metadata, "config");
  checkpoint.made_by = text_of(metadata, kMadeByKey);
  if (metadata.contains(kAliasesKey)) {
    add_aliases(checkpoint.tensors, metadata.at(kAliasesKey));
  }
  return checkpoint;
}

std::optional<std::string> problem_of(const std::string& path, const ReadTensors& read,
                                      Checkpoint& checkpoint) {
  try {
    checkpoint = read_whole(path, read);
    return std::nullopt;
  } catch (const ReadError& error) {
    throw ReadError(fmt::format("{}: {}", path, error.what()));
  } catch (const Error& error) {
    const std::string reason = error.what();
    constexpr std::string_view kDamaged = "damaged: ";
    return reason.starts_with(kDamaged) ? reason.substr(kDamaged.size()) : reason;
  }
}

}  // namespace

std::string checkpoint_name(int64_t step) { return fmt::format("{}{}{}", kPrefix, step, kSuffix); }

std::optional<int64_t> checkpoint_step(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  const int64_t step = list_index(name);
  // `model-007` is not the name of step 7's checkpoint.
  if (step < 0 || fmt::format("{}", step) != name) return std::nullopt;
  return step;
}

std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint) {
  std::string path = folder + "/" + checkpoint_name(checkpoint.progress.global_step);
  check_savable(path, checkpoint.tensors);
  Metadata metadata = {{"format", kFormat},
                       {"progress", checkpoint.progress.to_json()},
                       {"config", checkpoint.config},
                       {kChecksumKey, ""}};
  if (!checkpoint.made_by.empty()) metadata[kMadeByKey] = checkpoint.made_by;
  if (!checkpoint.networks.empty()) {
    metadata[kNetworksKey] = write_json(nlohmann::json(checkpoint.networks));
  }
  State once = checkpoint.tensors;
  if (const Aliases aliases = find_aliases(once); !aliases.empty()) {
    metadata[kAliasesKey] = aliases_to_json(aliases);
    for (const auto& [name, first] : aliases) once.erase(name);
  }
  AtomicFile file(path);
  write_safetensors(file, once, metadata);
  file.commit();
  return path;
}

Checkpoint load_checkpoint(const std::string& path) {
  try {
    return read_whole(path, read_tensors);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

StoredState load_stored_state(const std::string& path) {
  StoredState stored;
  std::string aliases = "{}";
  try {
    read_whole(path, [&](SafetensorsReader& reader) {
      std::vector<std::string> bytes = reader.read_bytes();
      const SafetensorsHeader& header = reader.header();
      for (size_t i = 0; i < bytes.size(); ++i) {
        stored[header.entries[i].name] = {header.entries[i],
                                          std::make_shared<const std::string>(std::move(bytes[i]))};
      }
      if (header.metadata.contains(kAliasesKey)) aliases = header.metadata.at(kAliasesKey);
      return names_of(reader);
    });
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
  add_tied(stored, aliases);
  return stored;
}

CheckpointHeader read_checkpoint_header(const std::string& path) {
  try {
    const SafetensorsReader reader(path);
    const SafetensorsHeader& header = reader.header();
    return {read_progress(header.metadata), text_of(header.metadata, "config"), header.entries,
            reader.file_bytes()};
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

std::optional<std::string> verify_checkpoint(const std::string& path) {
  Checkpoint unused;
  return problem_of(path, read_names, unused);
}

std::optional<std::string> try_load_checkpoint(const std::string& path, Checkpoint& checkpoint) {
  return problem_of(path, read_tensors, checkpoint);
}

std::vector<int64_t> checkpoint_steps(const std::string& folder) {
  std::vector<int64_t> steps;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const auto step = checkpoint_step(entry->path().filename().string());
    if (step) steps.push_back(*step);
  }
  // A folder that cannot be read now is not empty: otherwise a run would start from the beginning.
  if (failed && failed != std::errc::no_such_file_or_directory) {
    throw Error(fmt::format("cannot read the folder {}: {}", folder, failed.message()));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

Aliases find_aliases(const State& state) {
  using Place = std::tuple<std::string, const void*, c10::ScalarType, std::vector<int64_t>,
                           std::vector<int64_t>>;
  std::map<Place, std::string> firsts;
  Aliases aliases;
  for (const auto& [name, tensor] : state) {
    if (!tensor.defined() || tensor.numel() == 0) continue;
    const auto [first, is_new] = firsts.try_emplace(
        Place(name.substr(0, name.find('.')), tensor.const_data_ptr(), tensor.scalar_type(),
              tensor.sizes().vec(), tensor.strides().vec()),
        name);
    if (!is_new) aliases.emplace(name, first->second);
  }
  return aliases;
}

std::string aliases_to_json(const Aliases& aliases) {
  try {
    return write_json(nlohmann::json(aliases));
  } catch (const nlohmann::json::type_error&) {
    throw Error("the names of its tensors and its metadata must be UTF-8");
  }
}

void add_aliases(State& state, const std::string& json) { add_tied(state, json); }

}  // namespace stepop
