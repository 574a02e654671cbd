#include "runtime/core/value/yaml_writer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "runtime/core/value/yaml_reader.h"
#include "tests/runtime/core/value/random_values.h"

namespace stepop {
namespace yaml_writer_test {

Value parse(const std::string& text) { return parse_yaml(text, {"test.yaml", 0}); }

TEST_CASE("floats keep a point, so that every reader takes them for floats") {
  const std::vector<std::pair<double, const char*>> table = {
      {1.0, "1.0"},
      {0.1, "0.1"},
      {1e-5, "1.0e-05"},
      {1.5e-7, "1.5e-07"},
      {1e22, "1.0e+22"},
      {-0.0, "-0.0"},
      {1e5, "100000.0"},
      {5e-324, "5.0e-324"},
      {0.1 + 0.2, "0.30000000000000004"},
      {std::numeric_limits<double>::infinity(), ".inf"},
      {-std::numeric_limits<double>::infinity(), "-.inf"},
      {std::nan(""), ".nan"},
  };
  for (const auto& [number, text] : table) {
    CHECK(flow_yaml(number) == text);
    CHECK(parse(text) == Value(number));
  }
  CHECK(std::signbit(parse(flow_yaml(-0.0)).as_float()));
}

TEST_CASE("text is quoted where a reader could take it for something else") {
  for (const char* plain : {"LeNet", "a", "_x", "train/log_op", "./data", "../a.png", "/a/b",
                            "v1.2", "a-b", "a+b", "n", "y"}) {
    CHECK(flow_yaml(plain) == plain);
  }
  for (const char* text :
       {"",    " ",   "1",   "1e-3",       "010",      "0x1",   "true", "null", "~",        "yes",
        "No",  "ON",  "off", "2026-11-21", "12:30:45", "1_000", "0b1",  "=",    "<<",       "-",
        "- a", "?",   ":",   "a: b",       "a #b",     "#",     "&a",   "*a",   "!a",       "|",
        ">",   "%",   "@",   "`",          "{",        "}",     "[",    "]",    ",",        "a,b",
        "...", "---", ".5",  ".inf",       "+1",       "{a}",   "a b",  "'",    "trailing "}) {
    CAPTURE(text);
    CHECK(flow_yaml(text) == "\"" + std::string(text) + "\"");
    CHECK(parse("[" + flow_yaml(text) + "]") == Value(Value::List{text}));
  }
  CHECK(flow_yaml("a\"b\\c\n\t\r\x01\x7f") == R"("a\"b\\c\n\t\r\x01\x7f")");
  // Next line, line separator, paragraph separator, byte order mark: breaks to a reader of
  // YAML 1.1.
  CHECK(flow_yaml("\xc2\x85\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf") == R"("\x85\L\P\ufeff")");
  CHECK(flow_yaml("\xc3\xa4\xf0\x9f\x98\x80") == "\"\xc3\xa4\xf0\x9f\x98\x80\"");
}

TEST_CASE("maps stand in blocks, lists of plain values in one line") {
  const Value root = parse(
      "{model: {class: LeNet, hidden: [120, [84]]}, empty: {}, none: [], "
      "list: [{a: 1, b: {c: 2}}, [{d: 3}], 4], '1': x}");
  CHECK(to_yaml(root) ==
        "model:\n"
        "  class: LeNet\n"
        "  hidden: [120, [84]]\n"
        "empty: {}\n"
        "none: []\n"
        "list:\n"
        "  - a: 1\n"
        "    b:\n"
        "      c: 2\n"
        "  - - d: 3\n"
        "  - 4\n"
        "\"1\": x\n");
  CHECK(parse(to_yaml(root)) == root);
  CHECK(to_yaml(Value::Map{}) == "{}\n");
  CHECK(to_yaml(Value()) == "null\n");
}

TEST_CASE("what is written reads back as the same types and values") {
  RandomValues random(1);
  for (int i = 0; i < 3000; ++i) {
    const Value value = random.value(4);
    CAPTURE(i);
    CAPTURE(to_yaml(value));
    REQUIRE(parse(to_yaml(value)) == value);
    REQUIRE(parse(flow_yaml(value)) == value);
  }
}

/// `text` with the defaults that were taken, each `path` and its values.
std::string with_defaults(const std::string& text, const std::vector<TakenDefault>& defaults) {
  const Value value = parse(text);
  std::string yaml = to_yaml(value, defaults);
  CHECK(parse(yaml) == value);
  CHECK(without_comments(yaml) == to_yaml(value));
  return yaml;
}

TEST_CASE("a default that was taken is a comment where its key would stand") {
  CHECK(with_defaults("optimizer: {class: Adam, lr: 0.1}\nseed: 1\n",
                      {{"batch_size", {Value(4)}},
                       {"optimizer/betas", {Value(Value::List{0.9, 0.999})}},
                       {"eval_hook/freq", {Value("1e")}},
                       {"eval_hook/max_batches", {Value(0)}}}) ==
        "optimizer:\n"
        "  class: Adam\n"
        "  lr: 0.1\n"
        "  # betas: [0.9, 0.999]  # default\n"
        "seed: 1\n"
        "# batch_size: 4  # default\n"
        "# eval_hook:\n"
        "#   freq: \"1e\"  # default\n"
        "#   max_batches: 0  # default\n");
}

TEST_CASE("defaults below a component's name, null, an empty map and in lists have their place") {
  CHECK(with_defaults("model: LeNet\nckpt_zero: null\nema: {}\nhooks: [A, B]\n"
                      "log_ops: [{op: a}, b]\nlast: \"# no comment\"\n",
                      {{"model/classes", {Value(10)}},
                       {"ckpt_zero", {Value(false)}},
                       {"ema/decay", {Value(0.5)}},
                       {"hooks/1/every", {Value(7)}},
                       {"log_ops/0/when", {Value(3)}},
                       {"log_ops/1/when", {Value("x: #")}}}) ==
        "model: LeNet\n"
        "  # classes: 10  # default\n"
        "ckpt_zero: null\n"
        "# ckpt_zero: false  # default\n"
        "ema: {}\n"
        "  # decay: 0.5  # default\n"
        "hooks: [A, B]\n"
        "  # \"1/every\": 7  # default\n"
        "log_ops:\n"
        "  - op: a\n"
        "    # when: 3  # default\n"
        "  - b\n"
        "    # when: \"x: #\"  # default\n"
        "last: \"# no comment\"\n");
  CHECK(with_defaults("{}", {{"a", {Value(1)}}}) == "{}\n# a: 1  # default\n");
}

TEST_CASE("a key of several defaults shows all of them; one that is there by now, none") {
  CHECK(with_defaults("there: 1\n", {{"there", {Value(2)}},
                                     {"a", {Value(1), Value(2.5), Value("x")}},
                                     {"two\nlines", {Value("a\nb")}}}) ==
        "there: 1\n"
        "# a: 1  # default, elsewhere 2.5 and x\n"
        "# \"two\\nlines\": \"a\\nb\"  # default\n");
  // What is no text of YAML is no comment of it either.
  CHECK(with_defaults("there: 1\n", {{"a", {Value("\xff")}}}) == "there: 1\n");
  const std::string long_text = with_defaults("b: 1\n", {{"a", {Value(std::string(9999, 'x'))}}});
  CHECK(long_text.size() < 300);
}

}  // namespace yaml_writer_test
}  // namespace stepop
