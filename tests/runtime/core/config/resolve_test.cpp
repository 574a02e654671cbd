#include "runtime/core/config/resolve.h"

#include <doctest/doctest.h>

#include "runtime/core/config/merge.h"
#include "runtime/core/config/references.h"
#include "runtime/core/value/difference.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace resolve_test {

Value parse(const std::string& text, const std::string& file = "test.yaml") {
  return parse_yaml(text, {file, 0});
}

std::string merged(const std::string& base, const std::string& later) {
  Value root = parse(base, "base.yaml");
  merge(root, parse(later, "later.yaml"));
  return flow_yaml(root);
}

Override override_of(const std::string& path, const std::string& yaml) {
  return {path, parse_yaml(yaml, {Origin::kCommandLine, 0}, true)};
}

std::string overridden(const std::string& yaml, const std::vector<Override>& overrides) {
  Value root = parse(yaml);
  apply_overrides(root, overrides);
  return flow_yaml(root);
}

std::string override_error(const std::string& yaml, const std::vector<Override>& overrides) {
  return message_of([&] { overridden(yaml, overrides); });
}

TEST_CASE("maps merge deeply, lists and scalars replace") {
  CHECK(merged("model: {class: LeNet, lr: 1}\nlist: [1, 2]\na: 1\n",
               "model: {lr: 5}\nlist: [3]\nb: 2\n") ==
        "{model: {class: LeNet, lr: 5}, list: [3], a: 1, b: 2}");
  CHECK(merged("a: {b: {c: 1, d: 2}}", "a: {b: {d: 3, e: 4}}") == "{a: {b: {c: 1, d: 3, e: 4}}}");
  CHECK(merged("a: {b: 1}", "a: 3") == "{a: 3}");
  CHECK(merged("a: 3", "a: {b: 1}") == "{a: {b: 1}}");
  CHECK(merged("a: {b: 1}", "a:") == "{a: null}");
}

TEST_CASE("!replace takes a map whole, !remove drops a key") {
  CHECK(merged("a: {b: 1, c: 2}", "a: !replace {d: 3}") == "{a: {d: 3}}");
  CHECK(merged("a: 1\nb: 2", "a: !remove") == "{b: 2}");
  CHECK(merged("a: {b: 1, c: {d: 1}}", "a: {c: !remove {}}") == "{a: {b: 1}}");
  CHECK(merged("a: 1", "b: !remove") == "{a: 1}");
  CHECK(merged("a: 1", "!replace {b: 2}") == "{b: 2}");
  // In what is new or replaced as a whole, there is nothing to remove.
  CHECK(merged("a: 1", "b: {c: !remove , d: 2}") == "{a: 1, b: {d: 2}}");
  CHECK(merged("a: {b: 1}", "a: !replace {b: !remove , c: !replace {d: 1}}") == "{a: {c: {d: 1}}}");
}

TEST_CASE("a merged value keeps the place where it was written") {
  Value root = parse("a:\n  b: 1\n  c: 2\n", "base.yaml");
  merge(root, parse("\n\na: {c: 3}\n", "later.yaml"));
  CHECK(root.find("a/b")->origin().text() == "base.yaml:2");
  CHECK(root.find("a/c")->origin().text() == "later.yaml:3");
}

TEST_CASE("overrides set, add and append") {
  CHECK(overridden("a: {b: 1}", {override_of("a/b", "1e-3"), override_of("c/d", "[x]")}) ==
        "{a: {b: 0.001}, c: {d: [x]}}");
  CHECK(overridden("a: [1, 2]", {override_of("a/0", "5")}) == "{a: [5, 2]}");
  CHECK(overridden("a: [1]", {override_of("a/+", "2"), override_of("a/+", "3")}) ==
        "{a: [1, 2, 3]}");
  CHECK(overridden("{}", {override_of("a/+", "2")}) == "{a: [2]}");
  CHECK(overridden("a: [{b: 1}]", {override_of("a/0/b", "2"), override_of("a/+/b", "3")}) ==
        "{a: [{b: 2}, {b: 3}]}");
  CHECK(overridden("a:", {override_of("a/b", "2")}) == "{a: {b: 2}}");
  CHECK(overridden("a: {b: 1}", {override_of("a", "null")}) == "{a: null}");
  Value root = parse("a: 1");
  apply_overrides(root, {override_of("a", "2")});
  CHECK(root.find("a")->origin().text() == "command line");
}

TEST_CASE("a map on the command line merges as one in a later file; a class begins anew") {
  CHECK(overridden("a: {class: Adam, lr: 1, betas: [1, 2]}", {override_of("a", "{lr: 2}")}) ==
        "{a: {class: Adam, lr: 2, betas: [1, 2]}}");
  CHECK(overridden("a: Adam", {override_of("a", "{lr: 2}")}) == "{a: {class: Adam, lr: 2}}");
  CHECK(overridden("a: {class: Adam, beta: 1}", {override_of("a", "{class: SGD, lr: 2}")}) ==
        "{a: {class: SGD, lr: 2}}");
  CHECK(overridden("a: {b: {c: 1, d: 2}}", {override_of("a", "{b: {c: !remove }, e: 3}")}) ==
        "{a: {b: {d: 2}, e: 3}}");
  CHECK(overridden("a: {b: 1}", {override_of("a", "{}")}) == "{a: {}}");
  CHECK(overridden("a: [1]", {override_of("a", "{b: 1}")}) == "{a: {b: 1}}");
}

TEST_CASE("!remove and !replace are understood on the command line") {
  CHECK(overridden("{a: {b: 1, c: 2}, d: 3}", {override_of("a/b", "!remove")}) ==
        "{a: {c: 2}, d: 3}");
  CHECK(overridden("{a: {b: 1}, d: 3}", {override_of("a", "!remove"), override_of("e", "4")}) ==
        "{d: 3, e: 4}");
  CHECK(overridden("a: [1, 2, 3]", {override_of("a/0", "!remove"), override_of("a/2", "!remove"),
                                    override_of("a/1", "7")}) == "{a: [7]}");
  CHECK(overridden("a: {b: 1}", {override_of("a", "!replace {c: 2, d: !remove }")}) ==
        "{a: {c: 2}}");
  for (const char* path : {"b", "a/c", "a/b/c", "l/1", "l/+", "l/x"}) {
    CHECK(override_error("{a: {b: 1}, l: [1]}", {override_of(path, "!remove")}) ==
          std::string("command line: --") + path + ": nothing to remove: there is no such key");
  }
}

TEST_CASE("parents are set before children, in whatever order they are given") {
  // edflow's own example, the other way round.
  CHECK(overridden("{}", {override_of("a/b", "1"), override_of("a", "{c: 2}")}) ==
        "{a: {c: 2, b: 1}}");
  CHECK(overridden("a: [1, 2]", {override_of("a/1", "9"), override_of("a", "[3, 4]")}) ==
        "{a: [3, 9]}");
}

TEST_CASE("a parameter set on a component that is given by name makes it a map") {
  CHECK(overridden("model: LeNet", {override_of("model/hidden", "[64, 32]")}) ==
        "{model: {class: LeNet, hidden: [64, 32]}}");
}

TEST_CASE("overrides that cannot be set say why") {
  CHECK(override_error("a: 1", {override_of("a", "1"), override_of("/a/", "2")}) ==
        "command line: --/a/: given twice; keep one");
  CHECK(override_error("a: [1, 2]", {override_of("a/2", "1")}) ==
        "command line: --a/2: the list has 2 elements, counted from 0; + appends one");
  CHECK(override_error("a: [1, 2]", {override_of("a/x", "1")}) ==
        "command line: --a/x: \"x\" is not a position in a list: give a number from 0, or + to "
        "append");
  CHECK(override_error("\na: 3", {override_of("a/b", "1")}) ==
        "command line: --a/b: cannot set a key in 3, given at test.yaml:2");
  CHECK(override_error("a: {b: 1}", {override_of("a/+", "1")}) ==
        "command line: --a/+: + appends to a list, found a map, given at test.yaml:1");
  CHECK(override_error("a: 1", {override_of("/", "1")}) == "command line: --/: no key given");
  CHECK(override_error("a: 1", {override_of("a.b/c.d", "1")}) ==
        "command line: --a.b/c.d: the keys of a path are separated by slashes: --a/b/c/d; with -w "
        "dots are slashes");
  CHECK(overridden("a.b: 1", {override_of("a.b", "2")}) == "{a.b: 2}");
  CHECK(overridden("a: 1", {override_of("b/c.d", "2")}) == "{a: 1, b: {c.d: 2}}");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "a/";
  CHECK(override_error("a: 1", {override_of(deep, "1")}).ends_with("a/: nested deeper than 200"));
  CHECK(override_error("a: 1", {override_of(std::string(300, 'k'), "1")})
            .ends_with("kkk: a key of 300 bytes; 250 at most"));
}

TEST_CASE("a map of many keys is read, merged, written and looked through key by key") {
  std::string text;
  std::string removals;
  for (int i = 0; i < 300'000; ++i) {
    text += "key" + std::to_string(i) + ": 1\n";
    if (i > 0) removals += "key" + std::to_string(i) + ": !remove\n";
  }
  Value root = parse(text);
  CHECK(root.as_map().size() == 300'000);
  CHECK(root.find("key299999")->as_int() == 1);
  merge(root, parse(text));
  CHECK(parse(to_yaml(root)) == root);
  merge(root, parse(removals));
  CHECK(flow_yaml(root) == "{key0: 1}");
  CHECK(differences(parse(text), parse(text)).empty());

  std::vector<Override> overrides;
  for (int i = 0; i < 10'000; ++i) overrides.push_back({"a" + std::to_string(i), Value(i)});
  apply_overrides(root, overrides);
  CHECK(root.as_map().size() == 10'001);
}

TEST_CASE("a config is its files from left to right, then the overrides, then the references") {
  const ScratchFolder folder;
  const std::string base = folder.write("base.yaml", "lr: 1\nmodel: {lr: '{lr}', depth: 2}\n");
  const std::string small = folder.write("small.yaml", "lr: 2\nmodel: {depth: 1}\n");
  const Value root = resolve_config({base, small}, {override_of("lr", "3")});
  CHECK(flow_yaml(root) == "{lr: 3, model: {lr: 3, depth: 1}}");
  CHECK(root.find("model/depth")->origin().text() == small + ":2");
  CHECK(flow_yaml(resolve_config({}, {override_of("a", "1")})) == "{a: 1}");
}

TEST_CASE("callbacks without names have those of their classes, and of their scripts") {
  const ScratchFolder folder;
  const auto resolved = [&](const std::string& first, const std::string& second,
                            std::vector<Override> overrides = {}) {
    folder.write("a.yaml", first);
    folder.write("b.yaml", second);
    return flow_yaml(resolve_config({folder.path("a.yaml"), folder.path("b.yaml")}, overrides));
  };
  CHECK(resolved("eval_hook: {eval_callbacks: [accuracy, {class: top_k, k: 3}, ./my/worst.py]}",
                 "eval_hook: {eval_callbacks: histogram}") ==
        "{eval_hook: {eval_callbacks: {accuracy: accuracy, top_k: {class: top_k, k: 3}, worst: "
        "./my/worst.py, histogram: histogram}}}");
  CHECK(resolved("evaluations: {test: {eval_callbacks: [a]}}", "{}",
                 {override_of("eval_hook/eval_callbacks", "[b]")}) ==
        "{evaluations: {test: {eval_callbacks: {a: a}}}, eval_hook: {eval_callbacks: {b: b}}}");
  CHECK(resolved("eval_hook: null", "evaluations: {test: null}") ==
        "{eval_hook: null, evaluations: {test: null}}");
  CHECK(message_of([&] {
          resolved("{}", "{}", {override_of("eval_hook/eval_callbacks", "[a, {class: a, b: 1}]")});
        }) ==
        "command line: eval_callbacks: two are called \"a\"; give them names: {first: a, second: "
        "a}");
}

}  // namespace resolve_test
}  // namespace stepop
