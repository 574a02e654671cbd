#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "tests/dataset_of.h"
#include "tests/fuzz.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace json_lines_test {

std::unique_ptr<Dataset> lines_of(const std::string& path, const std::string& more = "") {
  return dataset_of(fmt::format("{{class: JsonLines, path: {}{}}}", path, more));
}

/// The error of an example, without the file.
std::string error_of(const std::string& lines, int64_t index, const std::string& more = "") {
  const ScratchFolder folder;
  const std::string path = folder.write("a.jsonl", lines);
  const std::string message = message_of([&] { batch_of(*lines_of(path, more), {index}); });
  const size_t at = message.find(path);
  return at == std::string::npos ? message : message.substr(at + path.size());
}

TEST_CASE("lines that Python writes have the values that Python reads in them") {
  const ScratchFolder folder;
  const std::string said = run_python(
      "import gzip, json, sys\n"
      "rows = [{'n': 2**62 + i, 'x': i / 3, 'ok': i == 1, 'pair': [[1, 2, 3], [4, 5, i]],\n"
      "         'word': 'h\\u00e4\\U0001f600 \"' + str(i), 'box': {'at': [0.5, i], 'to': {'y': "
      "i}}}\n"
      "        for i in range(3)]\n"
      "text = '\\r\\n\\n'.join(json.dumps(row) for row in rows)\n"
      "open(sys.argv[1] + '/a.jsonl', 'w', newline='').write(text)\n"
      "gzip.open(sys.argv[1] + '/a.jsonl.gz', 'wt', newline='').write(text)\n"
      "row = json.loads(text.split('\\r\\n\\n')[2])\n"
      "print(row['n'], row['x'].hex(), row['word'], row['box']['at'][1], sep='|', end='')\n",
      {folder.path()});
  for (const char* name : {"/a.jsonl", "/a.jsonl.gz"}) {
    const auto data = lines_of(folder.path() + name);
    REQUIRE(data->size() == 3);
    const Example example = example_of(*data, 2);
    CHECK(example.tensors.key_list() == "box/at, box/to/y, n, ok, pair, x");
    const auto& tensors = example.tensors;
    CHECK(fmt::format("{}|", tensors.at("n").item<int64_t>()) ==
          said.substr(0, said.find('|') + 1));
    CHECK(tensors.at("x").item<float>() == static_cast<float>(2.0 / 3));
    CHECK(said.find("|" + example.texts.at("word") + "|2") != std::string::npos);
    CHECK(describe_tensor(tensors.at("pair")) == "int64 [2, 3]");
    CHECK(values_of<int64_t>(tensors.at("pair")) == std::vector<int64_t>{1, 2, 3, 4, 5, 2});
    CHECK(values_of<float>(tensors.at("box/at")) == std::vector<float>{0.5, 2});
    CHECK(tensors.at("box/to/y").item<int64_t>() == 2);
    CHECK_FALSE(tensors.at("ok").item<bool>());
    CHECK(data->label_keys() == std::vector<std::string>{"box/to/y", "n", "ok", "x"});
    CHECK(values_of<int64_t>(data->labels("box/to/y")) == std::vector<int64_t>{0, 1, 2});
    CHECK(values_of<int64_t>(data->labels("ok").to(at::kLong)) == std::vector<int64_t>{0, 1, 0});
    CHECK_FALSE(data->labels("pair").defined());
  }
}

TEST_CASE("keys of JSON lines choose and name values, and null is NaN where floats says so") {
  const ScratchFolder folder;
  const auto path = folder.write("a.jsonl",
                                 "{\"a\": {\"b\": 1, \"c\": [[]]}, \"index\": 5, \"x\": 3}\n"
                                 "{\"a\": {\"b\": 2}, \"index\": 6, \"x\": null}\n"
                                 "{\"a\": {\"b\": 3}, \"index\": 7, \"x\": 0.5}\n");
  const auto data = lines_of(path, ", keys: {row: index, part: a/b, x: x}, floats: [x]");
  const Batch batch = batch_of(*data, {2, 1, 0});
  CHECK(values_of<int64_t>(batch["row"]) == std::vector<int64_t>{7, 6, 5});
  CHECK(values_of<int64_t>(batch["part"]) == std::vector<int64_t>{3, 2, 1});
  CHECK(batch["x"][0].item<float>() == 0.5F);
  CHECK(std::isnan(batch["x"][1].item<float>()));
  CHECK(batch["x"][2].item<float>() == 3);
  CHECK(batch_of(*lines_of(path, ", keys: [a/b]"), {0})["a/b"].item<int64_t>() == 1);
  const auto listed = example_of(*lines_of(path, ", keys: {a: a}"), 0);
  CHECK(describe_tensor(listed.tensors.at("a/c")) == "int64 [1, 0]");
  CHECK(message_of([&] { lines_of(path, ", keys: [x], floats: [y]"); }) ==
        "test.yaml:1: data/floats: the first line has no key \"y\"; there are: x");
  CHECK(message_of([&] { lines_of(path, ", keys: {a: 3}"); }) ==
        "test.yaml:1: data/keys: expected [text, label] or {class: label}, found a map");
  CHECK(unknown_keys_of("{class: JsonLines, path: " + path + ", keys: [x]}").empty());
}

TEST_CASE("an image in JSON lines is the file that its text names, beside the lines") {
  const ScratchFolder folder;
  folder.write("in/a.png", read_plain_or_gzip(STEPOP_SOURCE_DIR "/tests/data/images/rgb-8.png"));
  const auto path =
      folder.write("a.jsonl", "{\"image\": \"in/a.png\"}\n{\"image\": \"in/b.png\"}\n");
  const auto data = lines_of(path, ", images: [image], size: [4, 6], channels: 1");
  const auto folder_of_images = dataset_of(
      fmt::format("{{class: ImageFolder, path: {}, size: [4, 6], channels: 1}}", folder.path()));
  CHECK(example_of(*data, 0).tensors.at("image").equal(
      example_of(*folder_of_images, 0).tensors.at("image")));
  const std::string message = message_of([&] { batch_of(*data, {1}); });
  CHECK(message ==
        fmt::format("example 1: {}:2: cannot read {}/in/b.png: No such file or directory", path,
                    folder.path()));
}

TEST_CASE("a line that cannot be an example is named with what it has") {
  const std::string good = "{\"a\": 1}\n\n";
  CHECK(error_of(good + "[1, 2]\n", 1) ==
        ":3: the line: expected an object such as {\"key\": 1}, found a list of 2");
  CHECK(error_of(good + "{\"a\": \n", 1) == ":3: the line is not valid JSON (at its byte 7)");
  CHECK(error_of(good + "{\"a\": NaN}", 1) ==
        ":3: the line is not valid JSON (at its byte 7); JSON has no NaN, but null, which "
        "\"floats\" reads");
  CHECK(error_of(good + "{\"a\": 1.5}", 1) ==
        ":3: a: float32 [] is of another type than in the first line; \"floats: [a]\" reads all "
        "numbers as float32");
  CHECK(error_of(good + "{\"a\": null}", 1) ==
        ":3: a: expected a value; \"floats\" reads null as NaN, found null");
  CHECK(error_of(good + "{\"a\": [[1, 2], [3]]}", 1) ==
        ":3: a: expected a list of 2 like its neighbour, found a list of 1");
  CHECK(error_of(good + "{\"a\": [true, 1]}", 1) ==
        ":3: a: expected a boolean like its neighbour, found 1");
  CHECK(error_of(good + "{\"a\": 18446744073709551615}", 1) ==
        ":3: a: expected a number that fits into int64 or float32, found 18446744073709551615");
  CHECK(error_of(good + "{\"a\": 1e300}", 1, ", floats: [a]") ==
        ":3: a: expected a number that fits into int64 or float32, found 1e+300");
  CHECK(error_of(good + "{\"a\": [1, [2]]}", 1) ==
        ":3: a: expected no list, as its neighbour is none, found a list of 1");
  CHECK(error_of(good + "{\"b\": 1}", 1, ", keys: [a]") ==
        ":3: there is no key \"a\"; there are: b");
  CHECK(error_of("{\"a\": {\"b\": 1}, \"a/b\": 2}", 0) == ":1: a/b: two values have this key");
  CHECK(error_of(std::string(64'000'001, ' '), 0) == ":1: the line has more than 64 MB");
  CHECK(error_of("\n\n", 0) == ": holds no lines");
  CHECK(error_of("{\"index\": 1}", 0) ==
        ":1: \"index\" is each example's place in the dataset: keys: {row: index} renames it");
  CHECK(error_of(std::string(20'000, '['), 0).find(":1: the line is not valid JSON") == 0);
  CHECK(error_of("{\"a\": " + std::string(20, '[') + std::string(20, ']') + "}", 0) ==
        ":1: a: lists nest deeper than 16");
}

TEST_CASE("damaged JSON lines are read or refused") {
  const ScratchFolder folder;
  const std::string seed_lines =
      "{\"a\": [[1, 2.5], [3, 4]], \"b\": {\"c\": true, \"d\": null}, \"e\": \"\\u00e4\"}\n";
  ByteMutator mutator(fuzz_seed(), {"[", "]", "{", "}", "null", "1e999", "\\ud800", "\n", "\""});
  FuzzWatch watch("JSON lines", fuzz_seed());
  int read = 0;
  for (uint64_t i = 0; i < fuzz_first() + fuzz_count(600); ++i) {
    const auto path = folder.write("a.jsonl", mutator.mutate(seed_lines + seed_lines + seed_lines));
    if (i < fuzz_first()) continue;
    watch.run(i, [&] {
      try {
        const auto data = lines_of(path, ", floats: [a, b/d]");
        for (int64_t index = 0; index < data->size(); ++index) {
          if (message_of([&] { example_of(*data, index); }) == "no error") ++read;
        }
        data->labels("b/c");
      } catch (const Error&) {
      }
    });
  }
  CHECK(read > 10);
}

}  // namespace json_lines_test
}  // namespace stepop
