#include "runtime/config/resolve.h"

#include <doctest/doctest.h>

#include "runtime/config/yaml_reader.h"
#include "runtime/config/yaml_writer.h"

namespace stepop {
namespace {

Value parse(const char* text) { return parse_yaml(text, {"test.yaml", 0}); }

TEST_CASE("maps merge deeply, lists and scalars replace") {
  Value base = parse("model: {class: LeNet, lr: 1}\nlist: [1, 2]\na: 1\n");
  merge(base, parse("model: {lr: 5}\nlist: [3]\nb: 2\n"));
  CHECK(flow_yaml(base) == "{model: {class: LeNet, lr: 5}, list: [3], a: 1, b: 2}");
}

TEST_CASE("an unquoted {path} is the reference it is meant to be") {
  Value root = parse("a: 1.5\nb: {a}\nc: [{a}, '{b}']\nd: {a: null}\n");
  resolve_references(root);
  CHECK(flow_yaml(root) == "{a: 1.5, b: 1.5, c: [1.5, 1.5], d: {a: null}}");
}

}  // namespace
}  // namespace stepop
