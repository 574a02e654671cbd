#include "runtime/core/components/parameters.h"

#include <doctest/doctest.h>

#include "runtime/core/components/registry.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop {
namespace parameters_test {

struct Params {
  double from = 0;
  double rate = 1e-3;
  int64_t steps = 25000;
  bool nesterov = false;
  std::string form = "cos";
  std::array<double, 2> betas = {0.9, 0.999};
  std::vector<int64_t> hidden = {64, 32};
  std::optional<double> gamma;

  void declare(Parameters& p) {
    p.require("from", from, "the number at step 0");
    p.add("rate", rate, "how fast", above(0));
    p.add("steps", steps, "how long", at_least(1));
    p.add("nesterov", nesterov, "looks ahead");
    p.add("form", form, "the form", one_of({"cos", "linear", "none"}));
    p.add("betas", betas, "decay of averages", at_least(0).below(1));
    p.add("hidden", hidden, "widths", at_least(1));
    p.add("gamma", gamma, "the factor");
  }
};

Config config_of(const std::string& yaml) { return Config(parse_yaml(yaml, {"a.yaml", 0})); }

TEST_CASE("parameters are what their declaration says, and what a config changes") {
  const auto usual = read_parameters<Params>(config_of("from: 2"));
  CHECK(usual.from == 2);
  CHECK(usual.rate == 1e-3);
  CHECK(usual.steps == 25000);
  CHECK_FALSE(usual.gamma.has_value());
  const auto given =
      read_parameters<Params>(config_of("{from: 1, rate: 0.5, steps: 3.0, nesterov: true, form: "
                                        "linear, betas: [0, 0.5], hidden: [7], "
                                        "gamma: 0.9}"));
  CHECK(given.rate == 0.5);
  CHECK(given.steps == 3);
  CHECK(given.nesterov);
  CHECK(given.form == "linear");
  CHECK(given.betas == std::array{0.0, 0.5});
  CHECK(given.hidden == std::vector<int64_t>{7});
  CHECK(given.gamma == 0.9);
}

TEST_CASE("what is read and what is listed come from one declaration") {
  const auto all = parameters_of<Params>();
  REQUIRE(all.size() == 8);
  const auto defaults = [&] {
    std::vector<std::string> texts;
    for (const auto& one : all) texts.push_back(one.default_value);
    return texts;
  }();
  CHECK(defaults == std::vector<std::string>{"", "1e-3", "25000", "false", "cos", "[0.9, 0.999]",
                                             "[64, 32]", "none"});
  CHECK(all[1].about == "how fast");
  CHECK(all[1].type.kind == "number");
  CHECK(all[1].type.range.lowest == 0);
  CHECK_FALSE(all[1].type.range.has_lowest);
  CHECK(all[4].type.choices == std::vector<std::string>{"cos", "linear", "none"});
  CHECK(all[6].type.kind == "list of int");
}

TEST_CASE("a default that is taken is noted for the saved config; one that means nothing is not") {
  const Config config = config_of("from: 2");
  read_parameters<Params>(config);
  std::vector<std::string> noted;
  for (const auto& taken : config.taken_defaults()) noted.push_back(taken.path);
  CHECK(noted == std::vector<std::string>{"rate", "steps", "nesterov", "form", "betas", "hidden"});
  CHECK(config.unknown_keys().empty());
}

TEST_CASE("a wrong value is answered with its place, what may be there and what was found") {
  const auto message = [](const std::string& yaml) {
    return message_of([&] { read_parameters<Params>(config_of(yaml)); });
  };
  CHECK(message("{from: 1, rate: 0}") == "a.yaml:1: rate: expected more than 0, found 0");
  CHECK(message("{from: 1, rate: .nan}") == "a.yaml:1: rate: expected more than 0, found nan");
  CHECK(message("{from: 1, steps: 0}") == "a.yaml:1: steps: expected 1 or more, found 0");
  CHECK(message("{from: 1, steps: 1.5}") == "a.yaml:1: steps: expected a whole number, found 1.5");
  CHECK(message("{from: 1, form: cosine}") ==
        "a.yaml:1: form: expected cos, linear or none, found \"cosine\"");
  CHECK(message("{from: 1, betas: [0.9]}") ==
        "a.yaml:1: betas: expected two numbers, each from 0 to below 1, found [0.9]");
  CHECK(message("{from: 1, betas: [0.9, 1]}") ==
        "a.yaml:1: betas: expected two numbers, each from 0 to below 1, found [0.9, 1]");
  CHECK(message("{from: 1, hidden: [3, 0]}") == "a.yaml:1: hidden/1: expected 1 or more, found 0");
  CHECK(message("{}").find("from: missing") != std::string::npos);
}

struct OtherTypes {
  std::array<int64_t, 2> size = {28, 28};
  Path path;
  std::string mode = "only";

  void declare(Parameters& p) {
    p.add("size", size, "height and width", at_least(1));
    p.require("path", path, "a file");
    p.add("mode", mode, "how", one_of({"only"}));
  }
};

TEST_CASE("pairs of whole numbers, paths and single choices are read as they are declared") {
  const auto read = [](const std::string& yaml) {
    return read_parameters<OtherTypes>(config_of(yaml));
  };
  const auto message = [&](const std::string& yaml) { return message_of([&] { read(yaml); }); };
  CHECK(read("{path: b.txt, size: [3, 4]}").size == std::array<int64_t, 2>{3, 4});
  CHECK(read("{path: b.txt}").path.text.starts_with('/'));
  CHECK(parameters_of<OtherTypes>().at(1).is_path);
  CHECK(message("{path: b, size: [3]}") ==
        "a.yaml:1: size: expected two numbers, each 1 or more, found [3]");
  CHECK(message("{path: b, mode: other}") == "a.yaml:1: mode: expected only, found \"other\"");
}

/// What a component of each form was built of.
struct OfParams {
  using Params = parameters_test::Params;
  explicit OfParams(const Params& params) : from(params.from) {}
  double from;
};
struct OfBoth {
  using Params = parameters_test::Params;
  OfBoth(const Params& params, const Config& config)
      : from(params.from), has_more(config.has("more")) {}
  double from;
  bool has_more;
};
/// Inherits `Params`, and reads its config by itself.
struct Inherits : OfParams {
  explicit Inherits(const Config& config) : OfParams(read_parameters<Params>(config)) { from *= 2; }
};

TEST_CASE("a component is built by the constructor that it has") {
  const Config config = config_of("{from: 2, more: 1}");
  CHECK(make_component<OfParams>(config)->from == 2);
  CHECK(make_component<OfBoth>(config)->has_more);
  CHECK(make_component<Inherits>(config)->from == 4);
  CHECK(about_class<Inherits>().parameters.size() == 8);
}

TEST_CASE("a range names its bounds, and whether they belong to it") {
  CHECK(at_least(0).at_most(1).text() == "a number from 0 to 1");
  CHECK(above(0).below(2).text() == "a number above 0 to below 2");
  CHECK(Range().at_most(3).text() == "3 or less");
  CHECK(Range().below(3).text() == "less than 3");
  CHECK(at_least(0).at_most(1).contains(1));
  CHECK_FALSE(at_least(0).below(1).contains(1));
  CHECK_FALSE(above(0).contains(0));
}

TEST_CASE("every component of the tree declares its parameters once") {
  size_t count = 0;
  for (const Catalogue* catalogue : Catalogue::all()) {
    for (const auto& component : catalogue->registrations()) {
      if (component.file.find("/tests/") != std::string::npos) continue;
      for (const auto& parameter : component.about.parameters) {
        CAPTURE(catalogue->role());
        CAPTURE(component.name);
        CAPTURE(parameter.name);
        // A row in a registration has no type: what reads it stands elsewhere.
        CHECK_FALSE(parameter.type.kind.empty());
        ++count;
      }
    }
  }
  CHECK(count > 1000);
}

}  // namespace parameters_test
}  // namespace stepop
