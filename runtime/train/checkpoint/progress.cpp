#include "runtime/train/checkpoint/progress.h"

#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/value/value.h"

namespace stepop {

double Progress::fractional_epoch() const {
  const auto whole = static_cast<double>(epoch);
  if (batches_per_epoch <= 0) return whole;
  return whole + static_cast<double>(batch) / static_cast<double>(batches_per_epoch);
}

void Progress::take_place_in_data(const Progress& other) {
  epoch = other.epoch;
  batch = other.batch;
  samples_seen = other.samples_seen;
  streams = other.streams;
  has_begun_step = false;
}

namespace {

/// All that checkpoints knew at first.
const std::vector<std::string> kMainAlone = {""};

}  // namespace

std::string Progress::to_json() const {
  nlohmann::ordered_json json;
  json["global_step"] = global_step;
  json["epoch"] = epoch;
  json["batch"] = batch;
  json["batches_per_epoch"] = batches_per_epoch;
  json["train_examples"] = train_examples;
  json["samples_seen"] = samples_seen;
  json["seconds"] = seconds;
  json["batches_taken"] = batches_taken;
  if (!streams.empty()) json["streams"] = streams;
  json["evaluation_folder"] = evaluation_folder;
  if (evaluations != kMainAlone && !evaluation_folder.empty()) json["evaluations"] = evaluations;
  if (!order_algorithm.empty()) json["order_algorithm"] = order_algorithm;
  if (has_begun_step) json["has_begun_step"] = true;
  if (processes != 1) json["processes"] = processes;
  if (planned_steps != 0) {
    json["planned_steps"] = planned_steps;
    json["planned_steps_per_epoch"] = planned_steps_per_epoch;
  }
  if (batch_parts != 1) json["batch_parts"] = batch_parts;
  if (rewinds != 0) json["rewinds"] = rewinds;
  if (!stopped_by.empty()) json["stopped_by"] = stopped_by;
  // A reason is a user's own text, of whatever bytes.
  return write_json(json);
}

namespace {

/// What is written there must not lie elsewhere: `eval/<name>/<step>`, or nothing.
bool is_evaluation_folder(std::string_view path) {
  if (path.empty()) return true;
  constexpr std::string_view kBegin = "eval/";
  if (!path.starts_with(kBegin)) return false;
  path.remove_prefix(kBegin.size());
  const size_t slash = path.find('/');
  const std::string_view name = path.substr(0, slash);
  if (slash == std::string_view::npos || name.empty() || name == "." || name == "..") return false;
  return list_index(path.substr(slash + 1)) >= 0 && path.find('\0') == std::string_view::npos;
}

}  // namespace

Progress Progress::from_json(const std::string& text) {
  try {
    const auto json = read_json(text);
    Progress progress;
    json.at("global_step").get_to(progress.global_step);
    json.at("epoch").get_to(progress.epoch);
    json.at("batch").get_to(progress.batch);
    json.at("batches_per_epoch").get_to(progress.batches_per_epoch);
    json.at("samples_seen").get_to(progress.samples_seen);
    // Older checkpoints do not have it.
    if (json.contains("train_examples")) json.at("train_examples").get_to(progress.train_examples);
    json.at("seconds").get_to(progress.seconds);
    json.at("batches_taken").get_to(progress.batches_taken);
    if (json.contains("streams")) json.at("streams").get_to(progress.streams);
    json.at("evaluation_folder").get_to(progress.evaluation_folder);
    if (!progress.evaluation_folder.empty()) {
      progress.evaluations = json.value("evaluations", kMainAlone);
    }
    if (json.contains("order_algorithm")) {
      json.at("order_algorithm").get_to(progress.order_algorithm);
    }
    progress.has_begun_step = json.value("has_begun_step", false);
    progress.processes = json.value("processes", int64_t{1});
    progress.planned_steps = json.value("planned_steps", int64_t{0});
    progress.planned_steps_per_epoch = json.value("planned_steps_per_epoch", int64_t{0});
    progress.batch_parts = json.value("batch_parts", int64_t{1});
    progress.rewinds = json.value("rewinds", int64_t{0});
    progress.stopped_by = json.value("stopped_by", "");
    if (progress.global_step < 0 || progress.epoch < 0 || progress.batch < 0 ||
        progress.train_examples < 0 || progress.planned_steps < 0 ||
        progress.planned_steps_per_epoch < 0 || progress.rewinds < 0 || progress.batch_parts < 1) {
      throw Error("a count is below 0");
    }
    if (!is_evaluation_folder(progress.evaluation_folder)) {
      throw Error(
          fmt::format("expected the folder of an evaluation, eval/<time>_<name>/<step>, "
                      "found \"{}\"",
                      progress.evaluation_folder));
    }
    return progress;
  } catch (const std::exception& error) {
    throw Error(fmt::format("the position of the run cannot be read: {}", error.what()));
  }
}

}  // namespace stepop
