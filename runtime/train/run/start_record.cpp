#include "runtime/train/run/start_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/json_text.h"
#include "runtime/train/run/machine.h"
#include "runtime/train/run/provenance.h"

namespace stepop {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

Json texts_to_json(const OrderedMap<std::string>& texts) {
  Json json = Json::object();
  for (const auto& [key, text] : texts) json[key] = text;
  return json;
}

OrderedMap<std::string> texts_from_json(const Json& json) {
  OrderedMap<std::string> texts;
  for (const auto& [key, text] : json.items()) texts.set(key, text.get<std::string>());
  return texts;
}

Json tree_to_json(const GitTree& tree) {
  Json json = {{"folder", tree.folder},
               {"commit", tree.commit},
               {"branch", tree.branch},
               {"is_changed", tree.is_changed}};
  if (!tree.patch.empty()) {
    json["patch"] = tree.patch;
    json["patch_bytes"] = tree.patch_bytes;
    json["patch_checksum"] = tree.patch_checksum;
  }
  if (!tree.untracked.empty()) json["untracked"] = tree.untracked;
  if (tree.more_untracked > 0) json["more_untracked"] = tree.more_untracked;
  if (!tree.failure.empty()) json["failure"] = tree.failure;
  return json;
}

GitTree tree_from_json(const Json& json) {
  return {.folder = json.value("folder", ""),
          .commit = json.value("commit", ""),
          .branch = json.value("branch", ""),
          .is_changed = json.value("is_changed", false),
          .patch = json.value("patch", ""),
          .patch_bytes = json.value("patch_bytes", int64_t{0}),
          .patch_checksum = json.value("patch_checksum", ""),
          .untracked = json.value("untracked", std::vector<std::string>()),
          .more_untracked = json.value("more_untracked", int64_t{0}),
          .failure = json.value("failure", "")};
}

Json data_to_json(const DataFile& file) {
  Json json = {{"path", file.path}};
  if (file.is_folder) json["is_folder"] = true;
  if (file.files > 0 || file.is_folder) {
    json["files"] = file.files;
    json["bytes"] = file.bytes;
  }
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) json[key] = text;
  };
  add("modified", file.modified);
  add("listing", file.listing);
  add("content", file.content);
  add("failure", file.failure);
  return json;
}

DataFile data_from_json(const Json& json) {
  return {.path = json.value("path", ""),
          .is_folder = json.value("is_folder", false),
          .files = json.value("files", int64_t{0}),
          .bytes = json.value("bytes", int64_t{0}),
          .modified = json.value("modified", ""),
          .listing = json.value("listing", ""),
          .content = json.value("content", ""),
          .failure = json.value("failure", "")};
}

}  // namespace

std::string StartRecord::to_json() const {
  Json variables = Json::object();
  for (const auto& [name, value] : config_variables)
    variables[name] = value ? Json(*value) : Json();
  Json trees = Json::array();
  for (const auto& tree : git) trees.push_back(tree_to_json(tree));
  Json files = Json::object();
  for (const auto& [key, file] : data) files[key] = data_to_json(file);
  const Json made = try_read_ordered_json(made_by);
  const Json json = {{"format", kFormat},
                     {"kind", kind},
                     {"time", time},
                     {"command", command},
                     {"folder", folder},
                     {"program", program},
                     {"build", build},
                     {"host", host},
                     {"is_debug", is_debug},
                     {"allows_unknown", allows_unknown},
                     {"processes", processes},
                     {"launcher", launcher},
                     {"code_compiler", code_compiler},
                     {"step", step},
                     {"checkpoint", checkpoint},
                     {"checkpoint_checksum", checkpoint_checksum},
                     {"made_by", made.is_discarded() ? Json() : made},
                     {"libraries", texts_to_json(libraries)},
                     {"machine", texts_to_json(machine)},
                     {"environment", texts_to_json(environment)},
                     {"hidden", hidden},
                     {"config_variables", variables},
                     {"configs", configs},
                     {"config_files", texts_to_json(config_files)},
                     {"git", trees},
                     {"data_checksums", data_checksums},
                     {"data", files},
                     {"failures", failures},
                     {"is_whole", is_whole}};
  // Paths and environment values are bytes, which need not be UTF-8.
  return write_json(json, 1) + "\n";
}

std::optional<StartRecord> StartRecord::from_json(const std::string& text) {
  try {
    const Json json = read_ordered_json(text);
    StartRecord record;
    record.kind = json.at("kind").get<std::string>();
    record.time = json.at("time").get<std::string>();
    record.command = json.value("command", "");
    record.folder = json.value("folder", "");
    record.program = json.value("program", "");
    record.build = json.value("build", "");
    record.host = json.value("host", "");
    record.is_debug = json.value("is_debug", false);
    record.allows_unknown = json.value("allows_unknown", false);
    record.processes = json.value("processes", int64_t{1});
    record.launcher = json.value("launcher", "");
    record.code_compiler = json.value("code_compiler", "");
    record.step = json.value("step", int64_t{0});
    record.checkpoint = json.value("checkpoint", "");
    record.checkpoint_checksum = json.value("checkpoint_checksum", "");
    record.made_by = write_json(json.value("made_by", Json::object()));
    record.libraries = texts_from_json(json.value("libraries", Json::object()));
    record.machine = texts_from_json(json.value("machine", Json::object()));
    record.environment = texts_from_json(json.value("environment", Json::object()));
    record.hidden = json.value("hidden", std::vector<std::string>());
    const Json variables = json.value("config_variables", Json::object());
    for (const auto& [name, value] : variables.items()) {
      record.config_variables.set(
          name, value.is_null() ? std::nullopt : std::optional(value.get<std::string>()));
    }
    record.configs = json.value("configs", std::vector<std::string>());
    record.config_files = texts_from_json(json.value("config_files", Json::object()));
    for (const auto& tree : json.value("git", Json::array())) {
      record.git.push_back(tree_from_json(tree));
    }
    record.data_checksums = json.value("data_checksums", "");
    const Json files = json.value("data", Json::object());
    for (const auto& [key, file] : files.items()) {
      record.data.set(key, data_from_json(file));
    }
    record.failures = json.value("failures", std::vector<std::string>());
    record.is_whole = json.value("is_whole", false);
    return record;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::vector<std::string> changes_since(const StartRecord& start, const std::string& made_by_now) {
  std::vector<std::string> changes;
  const auto add = [&](const std::string& name, const std::string& was, const std::string& is) {
    if (was != is) changes.push_back(fmt::format("{}: it was {}, here it is {}", name, was, is));
  };
  const Json before = try_read_ordered_json(start.made_by);
  const Json now = try_read_ordered_json(made_by_now);
  const auto text_of = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : write_json(value);
  };
  if (before.is_object() && now.is_object()) {
    for (const auto& [key, value] : before.items()) {
      // The library is compared below; the build here also counts the user's own code.
      if (key == "LibTorch" || key == "build" || !now.contains(key)) continue;
      add(key, text_of(value), text_of(now[key]));
    }
  }
  if (!start.build.empty()) add("build", start.build, stepop_time());
  for (const auto& [name, version] : library_versions()) {
    if (const std::string* was = start.libraries.find(name)) add(name, *was, version);
  }
  for (const auto& [name, fact] : machine_facts()) {
    if (const std::string* was = start.machine.find(name)) add(name, *was, fact);
  }
  return changes;
}

}  // namespace stepop
