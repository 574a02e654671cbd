#include "runtime/tools/export/standardization_notes.h"

#include <doctest/doctest.h>

#include "runtime/core/value/yaml_reader.h"

namespace stepop {
namespace standardization_notes_test {

TEST_CASE("an export says which inputs were standardized, and by which numbers") {
  const auto notes_of = [](const char* yaml) {
    return standardization_notes(parse_yaml(yaml, {"test.yaml", 0}));
  };
  const auto notes = notes_of(
      "datasets:\n"
      "  train: {class: Standardized, mean: {x: [9, 9]}, std: {x: [9, 9]}}\n"
      "  validation:\n"
      "    class: Cached\n"
      "    dataset: {class: Standardized, fit: train, mean: {x: [13.065, 2], y: 0.5},\n"
      "              std: {x: [1, 0.25], y: 2}}\n");
  REQUIRE(notes.size() == 2);
  CHECK(notes[0] ==
        "the data's \"x\" is standardized, and the file does not do that: give it (x - mean) / "
        "std, with mean [13.06, 2] and std [1, 0.25]; all digits are in the run's config, "
        "datasets/validation/dataset/mean and datasets/validation/dataset/std");
  CHECK(notes[1].find("\"y\" is standardized") != std::string::npos);
  CHECK(notes_of("datasets: {train: {class: Csv, mean: {x: 1}}}").empty());
  CHECK(notes_of("seed: 1").empty());
}

}  // namespace standardization_notes_test
}  // namespace stepop
