#include "runtime/core/config/config.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/config/merge.h"
#include "runtime/core/config/read_pattern.h"
#include "runtime/core/config/references.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "tests/message_of.h"

namespace stepop {
namespace config_test {

Config config_of(const std::string& yaml) { return Config(parse_yaml(yaml, {"test.yaml", 0})); }

template <class T>
std::string reading(const std::string& yaml, const std::string& path) {
  return message_of([&] { config_of(yaml).get<T>(path); });
}

TEST_CASE("a whole number of more than 64 bits is a text, and says so where a number is meant") {
  const std::string seed = "seed: 123456789012345678901234567890";
  CHECK(config_of(seed).get<std::string>("seed") == "123456789012345678901234567890");
  for (const auto& message : {reading<int64_t>(seed, "seed"), reading<double>(seed, "seed")}) {
    CHECK(
        message.ends_with("found \"123456789012345678901234567890\": a whole number of more than "
                          "64 bits is read as a text; a float is written with an e, as 1e30"));
  }
}

TEST_CASE(
    "a component in the place of its name, and true in the place of a map, say what is meant") {
  const auto missing = [](const std::string& yaml) {
    return message_of([&] { config_of(yaml).get<std::string>("optimizer/class"); });
  };
  CHECK(missing("optimizer: {Adam: {lr: 1e-3}}") ==
        "test.yaml:1: optimizer/Adam: did you mean optimizer: {class: Adam, ...}? The name of a "
        "component is its key \"class\", beside its other keys");
  CHECK(missing("optimizer: {lr: 1e-3}").find("optimizer/class: missing; ") != std::string::npos);
  const Config config = config_of("integrations: {wandb: true}\n");
  config.get("integrations/wandb/active", false);
  CHECK(config.unknown_keys() ==
        "test.yaml:1: integrations/wandb: expected a map such as {active: true}, found true");
  const Config off = config_of("telemetry: false\n");
  off.get("telemetry/active", true);
  CHECK(off.unknown_keys() ==
        "test.yaml:1: telemetry: expected a map such as {active: false}, found false");
}

TEST_CASE("an error about a value says what was found") {
  const Config config = config_of("a: {n: 50, list: [1, 2], map: {x: 1}}\n");
  const auto message = [&](const char* path, const char* text) {
    return std::string(config.error(path, text).what());
  };
  CHECK(message("a/n", "expected 0 or 1") == "test.yaml:1: a/n: expected 0 or 1, found 50");
  CHECK(message("a/list", "expected one") == "test.yaml:1: a/list: expected one, found [1, 2]");
  CHECK(message("a/map", "expected a text") == "test.yaml:1: a/map: expected a text");
  CHECK(message("a/n", "expected 1, found two") == "test.yaml:1: a/n: expected 1, found two");
  CHECK(message("a/n", "is too large") == "test.yaml:1: a/n: is too large");
  CHECK(message("b", "expected a key").ends_with("b: expected a key"));
}

TEST_CASE("what code sets as a default is no key of the user") {
  const Config config = config_of("data: {x: 1}\n");
  config.get<int>("data/x");
  config.set_default("data/mean", Value::Map{{"x", Value(1.5)}});
  CHECK(config.unknown_keys().empty());
}

TEST_CASE("values are read by path with their type") {
  const Config config = config_of(
      "flag: true\nint: 3\nbig: 1e5\nnumber: 0.5\ntext: '5'\nints: [1, 2e1]\n"
      "numbers: [1, 0.5]\ntexts: [a, '1']\nmap: {deep: {er: 7}}\n");
  CHECK(config.get<bool>("flag"));
  CHECK(config.get<int>("int") == 3);
  CHECK(config.get<int64_t>("big") == 100000);  // a float without a fraction reads as an int
  CHECK(config.get<double>("int") == 3.0);      // an int reads as a float
  CHECK(config.get<double>("number") == 0.5);
  CHECK(config.get<std::string>("text") == "5");
  CHECK(config.get<std::vector<int64_t>>("ints") == std::vector<int64_t>{1, 20});
  CHECK(config.get<std::vector<double>>("numbers") == std::vector<double>{1, 0.5});
  CHECK(config.get<std::vector<std::string>>("texts") == std::vector<std::string>{"a", "1"});
  CHECK(config.get<Value>("map") == *config.peek("map"));
  CHECK(config.get<int>("map/deep/er") == 7);
  CHECK(config.at("map").at("deep").get<int>("er") == 7);
  CHECK(config.at("map/deep").root().get<int>("int") == 3);
  CHECK(config.get<int64_t>("ints/1") == 20);
}

TEST_CASE("a missing or null key gives the fallback, a wrong type never does") {
  const Config config = config_of("a:\nb: fast\n");
  CHECK(config.get("a", 3) == 3);
  CHECK(config.get("missing", 0.5) == 0.5);
  CHECK(config.get("missing", "text") == "text");
  CHECK(config.get_at_least("missing", 1, 5) == 5);
  CHECK_FALSE(config.has("a"));
  CHECK(config.has("b"));
  CHECK(message_of([&] { config.get("b", 0.5); }) ==
        "test.yaml:2: b: expected a number, found \"fast\"");
}

TEST_CASE("a wrong type is named with its place") {
  CHECK(reading<double>("\noptimizer:\n  lr: fast", "optimizer/lr") ==
        "test.yaml:3: optimizer/lr: expected a number, found \"fast\"");
  CHECK(reading<double>("a: '1e-3'", "a") == "test.yaml:1: a: expected a number, found \"1e-3\"");
  CHECK(reading<double>("a: true", "a") == "test.yaml:1: a: expected a number, found true");
  CHECK(reading<double>("a:", "a") == "test.yaml:1: a: expected a number, found nothing (null)");
  CHECK(reading<bool>("a: yes", "a") == "test.yaml:1: a: expected true or false, found \"yes\"");
  CHECK(reading<bool>("a: 1", "a") == "test.yaml:1: a: expected true or false, found 1");
  CHECK(reading<int>("a: 1.5", "a") == "test.yaml:1: a: expected a whole number, found 1.5");
  CHECK(reading<int>("a: 3000000000", "a") ==
        "test.yaml:1: a: expected a whole number of at most 32 bits, found 3000000000");
  CHECK(reading<int64_t>("a: 1e300", "a") ==
        "test.yaml:1: a: expected a whole number, found 1.0e+300");
  CHECK(reading<int64_t>("a: .nan", "a") == "test.yaml:1: a: expected a whole number, found .nan");
  CHECK(reading<std::string>("a: 1", "a") == "test.yaml:1: a: expected text, found 1");
  CHECK(reading<std::string>("a:\n  b: 1", "a") == "test.yaml:1: a: expected text, found a map");
  CHECK(reading<std::vector<double>>("a: 1", "a") ==
        "test.yaml:1: a: expected a list of numbers, found 1");
  CHECK(reading<std::vector<double>>("a:\n- 1\n- b", "a") ==
        "test.yaml:3: a/1: expected a number, found \"b\"");
  CHECK(reading<std::vector<int64_t>>("a: [0.5]", "a") ==
        "test.yaml:1: a/0: expected a whole number, found 0.5");
  CHECK(message_of([&] { config_of("a: 0").get_at_least("a", 1); }) ==
        "test.yaml:1: a: expected 1 or more, found 0");
}

TEST_CASE("a pattern that takes too many steps is named with its place") {
  const NamePattern pattern = read_pattern(config_of("a:\n  match: (a|aa)+[0-9]"), "a/match");
  const std::string name = std::string(30, 'a') + ".";
  CHECK(message_of([&] { pattern.is_in(name); }) ==
        "test.yaml:2: a/match: the pattern (a|aa)+[0-9] and the name " + name +
            ": the regular expression takes too many steps for a text of 31 bytes");
}

TEST_CASE("a missing key says where to give it, or where it may be meant") {
  CHECK(reading<double>("a: 1\noptimizer:\n  class: SGD", "optimizer/lr") ==
        "test.yaml:2: optimizer/lr: missing; give it in a config, or on the command line as "
        "--optimizer/lr VALUE");
  CHECK(reading<int>("a: 1\nbatch_sise: 4", "batch_size") ==
        "test.yaml:2: batch_sise: did you mean \"batch_size\", which is missing?");
  // A key that was read for itself is no misspelling of another.
  const Config config = config_of("num_steps: 3");
  config.get<int>("num_steps");
  CHECK(message_of([&] { config.get<int>("num_step"); }) ==
        "test.yaml:1: num_step: missing; give it in a config, or on the command line as "
        "--num_step VALUE");
  CHECK(message_of([] { Config().get<int>("a"); }) ==
        "a: missing; give it in a config, or on the command line as --a VALUE");
}

TEST_CASE("a key with the wrong indentation is found where it stands") {
  const std::string end = ": if that is the key you mean, correct its indentation";
  CHECK(reading<int>("model: A\ndatasets:\n  train: B\n  batch_size: 4", "batch_size") ==
        "test.yaml:1: batch_size: missing; \"datasets/batch_size\" is at test.yaml:4" + end);
  CHECK(reading<double>("optimizer:\n  class: SGD\nlr: 0.1", "optimizer/lr") ==
        "test.yaml:1: optimizer/lr: missing; \"lr\" is at test.yaml:3" + end);
  // A key that was read for itself is in its place.
  const Config config = config_of("datasets: {seed: 1}");
  config.get<int>("datasets/seed");
  CHECK(message_of([&] { config.get<int>("seed"); }) ==
        "test.yaml:1: seed: missing; give it in a config, or on the command line as --seed VALUE");
}

TEST_CASE("a list or a number where a map is needed is reported as what it is") {
  CHECK(reading<std::string>("a: 1\ndatasets:\n- B\n- C", "datasets/train") ==
        "test.yaml:2: datasets: expected a map with the key \"train\", found [B, C]");
  CHECK(reading<int>("a: {b: 3}", "a/b/c/d") ==
        "test.yaml:1: a/b: expected a map with the key \"c\", found 3");
  CHECK(reading<int>("a: [1]", "a/1") ==
        "test.yaml:1: a/1: missing; give it in a config, or on the command line as --a/1 VALUE");
}

TEST_CASE("many threads may read one config, keys that are missing too") {
  constexpr int kKeys = 2000;
  constexpr int kThreads = 4;
  std::string yaml;
  for (int i = 0; i < kKeys; ++i) yaml += "k" + std::to_string(i) + ": " + std::to_string(i) + "\n";
  yaml += "file: a.gz\n";
  const Config config = config_of(yaml);
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Config own = config;
      for (int i = 0; i < kKeys; ++i) {
        const std::string key = std::to_string((i * 7 + t * 500) % kKeys);
        if (own.get<int>("k" + key) != std::stoi(key)) ++wrong;
        if (own.get("missing" + key, 5) != 5) ++wrong;
        if (!own.get_path("file").ends_with("/a.gz")) ++wrong;
        own.set_default("default" + std::to_string(t), Value(int64_t{1}));
      }
    });
  }
  threads.clear();
  CHECK(wrong == 0);
  CHECK(config.known_paths().size() == 2 * kKeys + 1 + kThreads);
  CHECK(config.unknown_keys() == "");
}

TEST_CASE("every key that nobody read is reported with the nearest known key") {
  const Config config = config_of(
      "batch_sise: 4\noptimiser:\n  lr: 1\nmodel:\n  class: A\n  hiden: 3\nwhatever: 1\n"
      "extra: {mine: 1}\n");
  config.has("batch_size");
  config.has("optimizer/lr");
  config.get<std::string>("model/class");
  config.has("model/hidden");
  CHECK(config.unknown_keys() ==
        "test.yaml:1: unknown key \"batch_sise\": did you mean \"batch_size\"?\n"
        "test.yaml:2: unknown key \"optimiser\": did you mean \"optimizer\"?\n"
        "test.yaml:6: unknown key \"model/hiden\": did you mean \"model/hidden\"?\n"
        "test.yaml:7: unknown key \"whatever\": no component of this run reads it; a note of your "
        "own goes below extra/");
}

TEST_CASE("of a million keys that nobody read the first are reported") {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "key" + std::to_string(i) + ": 1\n";
  const Config config = config_of(text);
  config.has("batch_size");
  const std::string message = config.unknown_keys();
  CHECK(message.starts_with("test.yaml:1: unknown key \"key0\": no component of this run"));
  CHECK(std::count(message.begin(), message.end(), '\n') == 20);
  CHECK(message.ends_with("\n... and 299980 more"));
}

TEST_CASE("what is left of a component that another file replaced is told with the way out") {
  Value root = parse_yaml("data:\n  class: Csv\n  table: x.csv\n", {"base.yaml", 0});
  root.as_map().find("data")->as_map().set("class", parse_yaml("Noise", {"over.yaml", 6}));
  const Config config(std::move(root));
  config.get<std::string>("data/class");
  config.has("data/size");
  CHECK(config.unknown_keys() ==
        "base.yaml:3: unknown key \"data/table\": data is Noise since over.yaml:7, which has no "
        "such key; \"!replace\" before the map there keeps nothing of the one before");
  // Also beside a key of the new component that looks like it.
  Value pictures = parse_yaml("datasets:\n  train:\n    images: a.gz\n", {"base.yaml", 0});
  pictures.as_map()
      .find("datasets")
      ->as_map()
      .find("train")
      ->as_map()
      .set("class", parse_yaml("MixedImages", {"over.yaml", 9}));
  const Config mixed(std::move(pictures));
  mixed.get<std::string>("datasets/train/class");
  mixed.has("datasets/train/image");
  CHECK(mixed.unknown_keys() ==
        "base.yaml:3: unknown key \"datasets/train/images\": datasets/train is MixedImages since "
        "over.yaml:10, which has no such key; \"!replace\" before the map there keeps nothing of "
        "the one before");
}

TEST_CASE("keys that were read, asked for or claimed are known") {
  const Config config = config_of(
      "a: 1\nb: {c: 1, d: 2}\nlist: [1, 2]\nwhole: {x: {y: 1}}\nlazy: {z: 1}\nempty: "
      "{}\nnull_map:\n");
  config.get<int>("a");
  config.has("b/c");
  config.at("b").get<int>("d");
  config.get<std::vector<int64_t>>("list");
  config.get<Value>("whole");
  config.claim("lazy");
  config.has("empty/one");     // a map whose keys are all optional, and all left out
  config.has("null_map/one");  // the same without the braces
  CHECK(config.unknown_keys() == "");
}

TEST_CASE("a misspelt key in a map of a list is found") {
  const Config config = config_of("callbacks:\n- {class: A, every: 2}\n- {class: B, evry: 2}\n");
  for (const char* item : {"callbacks/0", "callbacks/1"}) {
    config.at(item).get<std::string>("class");
    config.at(item).has("every");
  }
  CHECK(config.unknown_keys() ==
        "test.yaml:3: unknown key \"callbacks/1/evry\": did you mean \"callbacks/1/every\"?");
}

TEST_CASE("a value where a map is read is no unknown key but a wrong type") {
  const Config config = config_of("eval_hook: validation\n");
  CHECK(config.get("eval_hook/eval_op", "default") == "default");
  CHECK(config.unknown_keys() == "test.yaml:1: eval_hook: expected a map, found \"validation\"");
}

TEST_CASE("a path is relative to its config file, or to the current folder") {
  namespace fs = std::filesystem;
  Value root = parse_yaml("data: ../images/a.gz\nwhole: /x/y\n", {"/home/user/configs/a.yaml", 0});
  apply_overrides(root, {{"own", parse_yaml("runs/b", {Origin::kCommandLine, 0}, true)}});
  const Config config(root);
  CHECK(config.get_path("data") == "/home/user/images/a.gz");
  CHECK(config.get_path("whole") == "/x/y");
  CHECK(config.get_path("own") == (fs::current_path() / "runs/b").string());
  // The saved config holds what was read, so that it loads from anywhere.
  CHECK(config.peek("data")->as_text() == "/home/user/images/a.gz");
  CHECK(config.peek("data")->origin().text() == "/home/user/configs/a.yaml:1");
  CHECK(config.get_path("data") == "/home/user/images/a.gz");

  Value relative = parse_yaml("data: a.gz\n", {"configs/a.yaml", 0});
  CHECK(Config(relative).get_path("data") == (fs::current_path() / "configs/a.gz").string());
  CHECK(message_of([] { config_of("a: ''").get_path("a"); }) ==
        "test.yaml:1: a: expected the name of a file or folder, found an empty text");
  CHECK(message_of([] { config_of("a: 3").get_path("a"); }) ==
        "test.yaml:1: a: expected text, found 3");
}

TEST_CASE("a path by reference is relative to the file that holds it") {
  Value base = parse_yaml("images: data/images\n", {"/base/a.yaml", 0});
  merge(base, parse_yaml("train: {images: '{images}'}\n", {"/later/b.yaml", 0}));
  resolve_references(base);
  CHECK(Config(base).get_path("train/images") == "/base/data/images");
}

TEST_CASE("the keys of a map are listed in order") {
  const Config config = config_of("map: {b: 1, a: 2}\nlist: [1]\n");
  CHECK(config.at("map").keys() == std::vector<std::string>{"b", "a"});
  CHECK(config.at("list").keys().empty());
  CHECK(config.at("missing").keys().empty());
}

TEST_CASE("the leaves of a tree are listed in order, by their paths") {
  const Config config = config_of("map: {b: {c: 1, d: [x, {e: null}]}, a: {}}\nlist: [[2], []]\n");
  CHECK(config.leaves() == std::vector<std::string>{"map/b/c", "map/b/d/0", "map/b/d/1/e", "map/a",
                                                    "list/0/0", "list/1"});
  CHECK(config.at("map/b").leaves() == std::vector<std::string>{"c", "d/0", "d/1/e"});
  CHECK(config.at("map/b/c").leaves().empty());
  CHECK(config.at("missing").leaves().empty());
  for (const auto& path : config.at("map/b").leaves()) {
    CHECK(config.at("map/b").peek(path) != nullptr);
  }
}

TEST_CASE("an error of a component begins with its place") {
  const Config config = config_of("a:\n  b: 1\n");
  CHECK(std::string(config.error("a/b", "too small").what()) == "test.yaml:2: a/b: too small");
  CHECK(std::string(config.at("a").error("c/d", "why").what()) == "test.yaml:1: a/c/d: why");
  CHECK(config.error("a", "x").exit_code() == 2);
  CHECK(Config().where() == "config");
}

TEST_CASE("each default that was taken is known, by its path, in the order of the reads") {
  const Config config(parse_yaml("a: 1\nnothing: null\npart: {x: 2}\n", {"test.yaml", 0}));
  CHECK(config.get("a", int64_t{5}) == 1);
  CHECK(config.get("nothing", true));
  CHECK(config.at("part").get("name", "usual") == "usual");
  CHECK(config.get("list", std::vector<double>{0.5, 1}).size() == 2);
  CHECK(config.get_at_least("part/y", 0, 3) == 3);
  CHECK(config.get_between("part/z", 0, 9, 4) == 4);
  CHECK(config.get("part/z", 5.5) == 5.5);
  CHECK(config.get("part/z", 5.5) == 5.5);
  std::string found;
  for (const auto& [path, values] : config.taken_defaults()) {
    found += path + ":";
    for (const auto& value : values) found += " " + flow_yaml(value);
    found += "\n";
  }
  CHECK(found == "nothing: true\npart/name: usual\nlist: [0.5, 1.0]\npart/y: 3\npart/z: 4 5.5\n");
}

TEST_CASE("a config knows which files were asked for, and not those that are only declared") {
  const Config config(parse_yaml("a: {path: /data/a}\nb: /data/b\nc: /data/c\n", {"", 0}));
  CHECK(config.at("a").get_path("path") == "/data/a");
  config.declare_path("b");
  config.get_path("c");
  config.note_opened("c", "/data/c/outputs.h5");
  CHECK(config.opened() ==
        std::map<std::string, std::string>{{"a/path", "/data/a"}, {"c", "/data/c/outputs.h5"}});
}

TEST_CASE("a path with what a shell would expand is reported with the reference that does") {
  const auto refused = [](const std::string& path) {
    return message_of([&] { config_of("a: \"" + path + "\"").get_path("a"); });
  };
  CHECK(refused("~/images")
            .ends_with("a: \"~/images\" is not there, and a config does not expand ~: write "
                       "{env:HOME}/images"));
  CHECK(refused("/data/$HOME/a")
            .ends_with("a: \"/data/$HOME/a\" is not there, and a config does not "
                       "expand $HOME: write /data/{env:HOME}/a"));
  CHECK(refused("${HOME}").ends_with("does not expand ${HOME}: write {env:HOME}"));
  // A name that has a dollar is one.
  CHECK(refused("a$") == "no error");
  CHECK(refused("a$NO_SUCH_VARIABLE_9") == "no error");
}

}  // namespace config_test
}  // namespace stepop
