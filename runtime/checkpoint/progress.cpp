#include "runtime/checkpoint/progress.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"

namespace stepop {

double Progress::fractional_epoch() const {
  const auto whole = static_cast<double>(epoch);
  if (batches_per_epoch <= 0) return whole;
  return whole + static_cast<double>(batch) / static_cast<double>(batches_per_epoch);
}

std::string Progress::to_json() const {
  nlohmann::ordered_json json;
  json["global_step"] = global_step;
  json["epoch"] = epoch;
  json["batch"] = batch;
  json["batches_per_epoch"] = batches_per_epoch;
  json["train_examples"] = train_examples;
  json["samples_seen"] = samples_seen;
  json["seconds"] = seconds;
  if (!order_algorithm.empty()) json["order_algorithm"] = order_algorithm;
  json["batches_taken"] = batches_taken;
  json["evaluation_folder"] = evaluation_folder;
  if (has_begun_step) json["has_begun_step"] = true;
  return json.dump();
}

Progress Progress::from_json(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    Progress progress;
    json.at("global_step").get_to(progress.global_step);
    json.at("epoch").get_to(progress.epoch);
    json.at("batch").get_to(progress.batch);
    json.at("batches_per_epoch").get_to(progress.batches_per_epoch);
    json.at("samples_seen").get_to(progress.samples_seen);
    // Older checkpoints do not tell it.
    if (json.contains("train_examples")) json.at("train_examples").get_to(progress.train_examples);
    json.at("seconds").get_to(progress.seconds);
    if (json.contains("order_algorithm")) {
      json.at("order_algorithm").get_to(progress.order_algorithm);
    }
    json.at("batches_taken").get_to(progress.batches_taken);
    json.at("evaluation_folder").get_to(progress.evaluation_folder);
    progress.has_begun_step = json.value("has_begun_step", false);
    if (progress.global_step < 0 || progress.epoch < 0 || progress.batch < 0 ||
        progress.train_examples < 0) {
      throw Error("a count is below 0");
    }
    return progress;
  } catch (const std::exception& error) {
    throw Error(fmt::format("the position of the run cannot be read: {}", error.what()));
  }
}

}  // namespace stepop
