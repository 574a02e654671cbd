// The classes of a run have the same numbers in every split.
#include "runtime/data/class_numbers.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "eval_out/write/eval_writer.h"
#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/meta_writer.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/tar_file.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace class_numbers_test {

using Numbers = std::vector<int64_t>;

/// An image in each of these folders.
std::string folder_of(const ScratchFolder& scratch, const std::string& name,
                      const std::vector<std::string>& classes) {
  const std::string image = read_plain_or_gzip(STEPOP_SOURCE_DIR "/tests/data/images/rgb-8.png");
  for (const auto& each : classes) scratch.write(name + "/" + each + "/a.png", image);
  return scratch.path(name);
}

Config config_of(const std::string& train, const std::string& validation,
                 const std::string& more = "") {
  return Config(parse_yaml(
      fmt::format("datasets:\n  train: {}\n  validation: {}\n{}", train, validation, more),
      {"test.yaml", 0}));
}

std::string images(const std::string& folder, const std::string& more = "") {
  return fmt::format("{{class: ImageFolder, path: {}{}}}", folder, more);
}

Numbers numbers_of(const Config& config, const std::string& split,
                   const std::string& key = "class") {
  return values_of<int64_t>(datasets().build(config, "datasets/" + split)->labels(key));
}

TEST_CASE("folders that validation lacks move no number of another class") {
  const ScratchFolder scratch;
  const std::string train = folder_of(scratch, "tr", {"0", "180", "270", "90"});
  const std::string validation = folder_of(scratch, "va", {"0", "270", "90"});
  for (const bool training_is_first : {true, false}) {
    const Config config = config_of(images(train), images(validation));
    if (training_is_first) datasets().build(config, "datasets/train");
    const auto dataset = datasets().build(config, "datasets/validation");
    CHECK(values_of<int64_t>(dataset->labels("class")) == Numbers{0, 2, 3});
    CHECK(values_of<int64_t>(example_of(*dataset, 2).tensors.at("class")) == Numbers{3});
    CHECK(dataset->notice() == "no example of \"180\"");
    CHECK(numbers_of(config, "train") == Numbers{0, 1, 2, 3});
    CHECK(class_names_of(config, "class") == std::vector<std::string>{"0", "180", "270", "90"});
  }
}

TEST_CASE("a run keeps the names, and new folders take them without the training's") {
  const ScratchFolder scratch;
  const Config first =
      config_of(images(folder_of(scratch, "tr", {"a", "b", "c"})), images("missing"));
  datasets().build(first, "datasets/train");
  const std::string saved = to_yaml(*first.root().peek());
  CHECK(saved.find("class_names:\n  class: [a, b, c]\n") != std::string::npos);
  const std::string file = scratch.write("run.yaml", saved);
  Value again = parse_yaml(saved, {file, 0});
  *again.find("datasets/train/path") = Value("gone");
  *again.find("datasets/validation/path") = Value(folder_of(scratch, "new", {"b", "c"}));
  CHECK(numbers_of(Config(again), "validation") == Numbers{1, 2});
  folder_of(scratch, "new", {"dog"});
  CHECK(message_of([&] { numbers_of(Config(again), "validation"); }) ==
        fmt::format("{}/dog: expected a class of the training: a, b, c ({}:9: class_names/class; "
                    "with \"unknown: "
                    "id\" any other has the number 3); \"classes\" leaves folders out",
                    scratch.path("new"), file));
  again.find("datasets/validation")->as_map().set("unknown", Value("id"));
  CHECK(numbers_of(Config(again), "validation") == Numbers{1, 2, 3});
  again.find("datasets/validation")->as_map().set("classes", Value(Value::List{"c", "b"}));
  CHECK(numbers_of(Config(again), "validation") == Numbers{2, 1});
  again.find("datasets/validation")->as_map().set("unknown", Value("ids"));
  CHECK(message_of([&] { numbers_of(Config(again), "validation"); }) ==
        file +
            ":5: datasets/validation/unknown: expected error or id, the number after those of the "
            "classes; "
            "found \"ids\"");
}

TEST_CASE("columns of classes have the numbers of the training, whatever reads them") {
  const ScratchFolder scratch;
  const std::string columns = "columns: {town: {type: class, key: class}}";
  const auto table = [&](const std::string& name, const std::string& text) {
    return fmt::format("{{class: Csv, path: {}, {}}}", scratch.write(name, text), columns);
  };
  const std::string train = table("tr.csv", "town,x\nBonn,1\nKoeln,2\nUlm,3\n");
  const std::string some = table("va.csv", "town,x\nUlm,2\nKoeln,1\n");
  CHECK(numbers_of(config_of(train, some), "validation") == Numbers{2, 1});
  const std::string folder = folder_of(scratch, "va", {"Koeln", "Ulm"});
  CHECK(numbers_of(config_of(train, images(folder)), "validation") == Numbers{1, 2});
  CHECK(numbers_of(config_of(images(folder), some), "validation") == Numbers{1, 0});
  CHECK(message_of([&] { numbers_of(config_of(some, train), "validation"); }) ==
        scratch.path("tr.csv") +
            ":2: column \"town\": expected a class of the training: Koeln, Ulm (class_names/class; "
            "with "
            "\"unknown: id\" any other has the number 2), found \"Bonn\"");
}

TEST_CASE("several readers of the training share their classes") {
  const ScratchFolder scratch;
  const std::string train =
      fmt::format("{{class: Concat, datasets: [{}, {}]}}", images(folder_of(scratch, "1", {"b"})),
                  images(folder_of(scratch, "2", {"a", "b"})));
  const Config config = config_of(train, images(folder_of(scratch, "va", {"a"})));
  for (int i = 0; i < 2; ++i) {
    CHECK(numbers_of(config, "train") == Numbers{0, 1, 0});
    CHECK(numbers_of(config, "validation") == Numbers{1});
  }
}

TEST_CASE("each part of a Zip has classes of its own") {
  const ScratchFolder scratch;
  const auto pair = [&](const std::string& name, const std::vector<std::string>& left,
                        const std::vector<std::string>& right) {
    return fmt::format(
        "{{class: Zip, datasets: {{left: {}, right: {{class: LabelsOnly, dataset: {}}}}}}}",
        images(folder_of(scratch, name + "1", left)),
        images(folder_of(scratch, name + "2", right)));
  };
  for (const bool training_is_first : {true, false}) {
    const Config config =
        config_of(pair("tr", {"b", "c"}, {"a", "b"}), pair("va", {"b", "c"}, {"a", "b"}));
    if (training_is_first) datasets().build(config, "datasets/train");
    for (const char* split : {"validation", "train"}) {
      CAPTURE(split);
      CHECK(numbers_of(config, split, "left/class") == Numbers{0, 1});
      CHECK(numbers_of(config, split, "right/class") == Numbers{0, 1});
    }
    CHECK(class_names_of(config, "left/class") == std::vector<std::string>{"b", "c"});
    CHECK(class_names_of(config, "right/class") == std::vector<std::string>{"a", "b"});
  }
}

TEST_CASE("plain numbers where the training has names are reported") {
  const ScratchFolder scratch;
  const std::string few = folder_of(scratch, "few", {"ant", "bee"});
  const std::string many = folder_of(scratch, "many", {"0", "1", "10", "2"});
  const std::string same = folder_of(scratch, "same", {"0", "1", "2"});
  const auto notice = [&](const std::string& train, const std::string& validation) {
    const Config config = config_of(images(train), validation);
    const auto dataset = datasets().build(config, "datasets/validation");
    datasets().build(config, "datasets/train");
    return dataset->notice();
  };
  const std::string table =
      "{class: Csv, path: " + scratch.write("va.csv", "class,x\n0,1\n1,2\n") + "}";
  CHECK(notice(same, table) == "");
  CHECK(notice(few, table) ==
        "the whole numbers of \"class\" are taken as they are: 0 is the class \"ant\" of the "
        "training; columns: {class: class} reads names");
  CHECK(
      notice(many, table) ==
      "warning: the whole numbers of \"class\" are taken as they are: 2 is the class \"10\" of the "
      "training; columns: {class: class} reads names");
  const std::string plain =
      "warning: the whole numbers of \"class\" are taken as they are: 2 is the class \"10\" of the "
      "training";
  CHECK(notice(many, "{class: JsonLines, path: " +
                         scratch.write("va.jsonl", "{\"class\": 0}\n{\"class\": 1}\n") + "}") ==
        plain);
  run_python("import sys, numpy as np; np.save(sys.argv[1], np.arange(3))",
             {scratch.path("class.npy")});
  CHECK(notice(many, "{class: Npy, path: " + scratch.path("class.npy") + "}") == plain);
  scratch.write("shards/0.tar", tar_member("1.cls", "1") + tar_end());
  CHECK(notice(many, "{class: TarShards, path: " + scratch.path("shards") + "}") ==
        plain + "; classes.txt beside the shards has their names");
  scratch.write("plain.py", R"(
class Plain:
    def __len__(self):
        return 2
    def __getitem__(self, i):
        return 0.5, i
)");
  CHECK(notice(many, fmt::format("{{class: Python, object: \"{}:Plain\", keys: [x, class]}}",
                                 scratch.path("plain.py")))
            .ends_with("\n" + plain));
  const std::string data = STEPOP_SOURCE_DIR "/configs/data/digits-test-";
  CHECK(notice(many, fmt::format("{{class: Idx, images: {0}images.idx.gz, labels: "
                                 "{0}labels.idx.gz}}",
                                 data)) == plain);
}

TEST_CASE("outputs of another run have the numbers of the training") {
  const ScratchFolder scratch;
  const std::string path = scratch.path("outputs.h5");
  EvalWriter writer(path, 2, {{"config", std::string("class_names: {class: [b, c]}\n")}});
  const std::vector<int64_t> rows = {0, 1};
  writer.write({.labels = {{"class", at::tensor(rows)}}}, rows);
  writer.finish();
  const std::string outputs = "{class: EvalOutputs, path: " + path + "}";
  const Config config = config_of(images(folder_of(scratch, "tr", {"a", "b", "c"})), outputs);
  const auto dataset = datasets().build(config, "datasets/validation");
  CHECK(values_of<int64_t>(dataset->labels("class")) == Numbers{1, 2});
  CHECK(values_of<int64_t>(example_of(*dataset, 1).tensors.at("class")) == Numbers{2});
  CHECK(values_of<int64_t>(batch_of(*dataset, {1, 0})["class"]) == Numbers{2, 1});
  CHECK(message_of([&] {
          numbers_of(config_of(images(folder_of(scratch, "other", {"a", "b"})), outputs),
                     "validation");
        }) == fmt::format("{}: expected a class of the training: a, b (class_names/class; with "
                          "\"unknown: id\" any other has the number 2); found \"c\", number 1",
                          path));
}

TEST_CASE("a folder of stepop meta has the names of its classes") {
  const ScratchFolder scratch;
  const Config made = config_of(fmt::format("{{class: LabelsOnly, dataset: {}}}",
                                            images(folder_of(scratch, "some", {"b", "c"}))),
                                "{}");
  const auto source = datasets().build(made, "datasets/train");
  const std::string folder = scratch.path("meta");
  write_meta_folder(*source, folder, "two", all_class_names(made), {}, {});
  const std::string meta = "{class: Meta, path: " + folder + "}";
  const Config config = config_of(images(folder_of(scratch, "tr", {"a", "b", "c"})), meta);
  CHECK(numbers_of(config, "validation") == Numbers{1, 2});
  const auto dataset = datasets().build(config, "datasets/validation");
  CHECK(values_of<int64_t>(example_of(*dataset, 1).tensors.at("class")) == Numbers{2});
  CHECK(dataset->notice() == folder + "/meta.yaml: class: no example of \"a\"");
}

TEST_CASE("names in two forms of Unicode are one class; names that look alike are reported") {
  const ScratchFolder scratch;
  const std::string composed = "K\u00f6ln";
  const std::string decomposed = "Ko\u0308ln";
  const std::string train = folder_of(scratch, "tr", {composed, "Bonn"});
  const std::string validation = folder_of(scratch, "va", {decomposed});
  CHECK(numbers_of(config_of(images(train), images(validation)), "validation") == Numbers{1});
  const Config table(
      parse_yaml(fmt::format("datasets: {{train: {{class: Csv, path: {}, columns: {{a: class}}}}}}",
                             scratch.write("a.csv", fmt::format("a\n{}\n{}\ncat\n\"cat \"\nCat\n",
                                                                composed, decomposed))),
                 {"test.yaml", 0}));
  const auto dataset = datasets().build(table, "datasets/train");
  CHECK(values_of<int64_t>(dataset->labels("a")) == Numbers{1, 1, 2, 3, 0});
  CHECK(dataset->notice() ==
        "column \"a\": the classes \"Cat\" and \"cat\" differ in capitals or in spaces at their "
        "ends alone; the classes \"Cat\" and \"cat \" differ in capitals or in spaces at their "
        "ends alone");
}

TEST_CASE("where the training's classes cannot be known, each split has its own, which is said") {
  const ScratchFolder scratch;
  const std::string folder = folder_of(scratch, "va", {"b", "c"});
  const Config lost = config_of(images("gone"), images(folder));
  const auto dataset = datasets().build(lost, "datasets/validation");
  CHECK(values_of<int64_t>(dataset->labels("class")) == Numbers{0, 1});
  CHECK(dataset->notice().starts_with(
      "the classes of the training are not known, as datasets/train cannot be read (test.yaml:2: "
      "datasets/train/path: no such folder: "));
  const Config numbers =
      config_of("{class: RandomTensors, size: 4, tensors: {image: [1]}}", images(folder));
  CHECK(datasets().build(numbers, "datasets/validation")->notice() ==
        "the classes of the training are not known, as datasets/train names no classes of this "
        "key: these are numbered by themselves, b, c; class_names gives the names of the training "
        "in their order");
  const Config given = config_of("{class: RandomTensors, size: 4, tensors: {image: [1]}}",
                                 images(folder), "class_names: {class: [a, b, c]}\n");
  CHECK(numbers_of(given, "validation") == Numbers{1, 2});
  CHECK(message_of([&] {
          numbers_of(config_of(images(folder), images(folder), "class_names: {class: [b, b]}\n"),
                     "train");
        }) == "test.yaml:4: class_names/class: \"b\" is there twice, as number 0 and 1");
}

TEST_CASE("shards with a list of names have the numbers of the training") {
  const ScratchFolder scratch;
  std::string shard;
  for (int i = 0; i < 2; ++i) {
    shard += tar_member(fmt::format("{}.cls", i), std::to_string(i));
  }
  scratch.write("shards/a.tar", shard + tar_end());
  scratch.write("shards/classes.txt", "bee\ncat\n");
  const auto numbers = [&](const std::string& train, const std::string& more = "") {
    const Config config =
        config_of(images(folder_of(scratch, train, {"ant", "bee"})),
                  fmt::format("{{class: TarShards, path: {}{}}}", scratch.path("shards"), more));
    const auto dataset = datasets().build(config, "datasets/validation");
    return Numbers{example_of(*dataset, 0).tensors.at("class").item<int64_t>(),
                   example_of(*dataset, 1).tensors.at("class").item<int64_t>()};
  };
  CHECK(message_of([&] { numbers("tr"); })
            .ends_with("shards/classes.txt: expected a class of the training: ant, bee "
                       "(class_names/class; with "
                       "\"unknown: id\" any other has the number 2); found \"cat\", number 1"));
  CHECK(numbers("tr", ", unknown: id") == Numbers{1, 2});
  folder_of(scratch, "more", {"cat"});
  CHECK(numbers("more") == Numbers{1, 2});
}

TEST_CASE("categories of a meta.yaml have the numbers of the training, unless all are others") {
  const ScratchFolder scratch;
  const auto meta = [&](const std::string& name, const std::string& categories) {
    scratch.write(
        name + "/meta.yaml",
        "loaders: {kind: category}\nloader_kwargs: {kind: {categories: " + categories + "}}\n");
    const int64_t rows[] = {1, 0, 1};
    scratch.write(name + "/labels/kind-*-3-*-int64.npy",
                  {reinterpret_cast<const char*>(rows), sizeof(rows)});
    return fmt::format("{{class: Meta, path: {}}}", scratch.path(name));
  };
  const std::string train = meta("tr", "[ant, bee, cat]");
  const Config config = config_of(train, meta("va", "[cat, bee]"));
  const auto dataset = datasets().build(config, "datasets/validation");
  CHECK(values_of<int64_t>(dataset->labels("kind_")) == Numbers{1, 2, 1});
  CHECK(example_of(*dataset, 1).tensors.at("kind_").item<int64_t>() == 2);
  CHECK(example_of(*dataset, 1).texts.at("kind") == "cat");
  CHECK(dataset->notice() == scratch.path("va") + "/meta.yaml: kind: no example of \"ant\"");
  const auto numbered =
      datasets().build(config_of(train, meta("map", "{0: cat, 1: bee}")), "datasets/validation");
  CHECK(values_of<int64_t>(numbered->labels("kind_")) == Numbers{1, 2, 1});
  const auto people =
      datasets().build(config_of(train, meta("others", "[Eve, Joe]")), "datasets/validation");
  CHECK(values_of<int64_t>(people->labels("kind_")) == Numbers{1, 0, 1});
  CHECK(people->notice() == scratch.path("others") +
                                "/meta.yaml: kind: none of its categories is one of the training: "
                                "they keep their own numbers");
}

TEST_CASE("classes that a dataset in Python names have the numbers of the training") {
  const ScratchFolder scratch;
  scratch.write("sets.py", R"(
class Pairs:  # as torchvision's ImageFolder: the numbers follow from the folders that are there
    def __init__(self, names):
        self.classes = names
    def __len__(self):
        return len(self.classes)
    def __getitem__(self, i):
        return 0.5, i

class Arrays(Pairs):
    def __init__(self, names):
        import numpy
        self.classes = numpy.array(names)

class Numbered(Pairs):
    def __init__(self, names):
        self.classes = {name: number for number, name in enumerate(names)}

class Chain(Pairs):  # as torch.utils.data.ConcatDataset
    def __init__(self, names):
        self.datasets = [Pairs(names), Numbered(names)]
    def __len__(self):
        return len(self.datasets[0])

class ClassLabel:
    def __init__(self, names):
        self.names = names

class Rows:  # as those of Hugging Face's datasets
    def __init__(self, names):
        self.features = {"label": ClassLabel(names), "x": None}
        self.names = names
    def __len__(self):
        return len(self.names)
    def __getitem__(self, i):
        return {"label": i, "x": 0.5}

class Part:  # as torch.utils.data.Subset
    def __init__(self, names):
        self.dataset = Pairs(names)
    def __len__(self):
        return len(self.dataset)
    def __getitem__(self, i):
        return self.dataset[i]
)");
  const auto set = [&](const std::string& kind, const std::string& names, const std::string& keys,
                       const std::string& unknown = "error") {
    return fmt::format(
        "{{class: Python, object: \"{}:{}\", kwargs: {{names: {}}}, keys: {}, unknown: {}}}",
        scratch.path("sets.py"), kind, names, keys, unknown);
  };
  for (const char* kind : {"Pairs", "Part", "Rows", "Arrays", "Numbered", "Chain"}) {
    CAPTURE(kind);
    const std::string keys = kind == std::string("Rows") ? "{x: x, class: label}" : "[x, class]";
    const Config config =
        config_of(set("Pairs", "[ant, bee, cat]", "[x, class]"), set(kind, "[bee, cat]", keys));
    const auto dataset = datasets().build(config, "datasets/validation");
    CHECK(values_of<int64_t>(batch_of(*dataset, {0, 1})["class"]) == Numbers{1, 2});
    const Config more =
        config_of(set("Pairs", "[ant, bee]", "[x, class]"), set(kind, "[bee, cat]", keys));
    const auto wrong = datasets().build(more, "datasets/validation");
    CHECK(values_of<int64_t>(batch_of(*wrong, {0})["class"]) == Numbers{1});
    CHECK(message_of([&] { batch_of(*wrong, {1}); })
              .ends_with("expected a class of the training: ant, bee (class_names/class; with "
                         "\"unknown: id\" any "
                         "other has the number 2); found \"cat\", number 1"));
    const Config others =
        config_of(set("Pairs", "[ant, bee]", "[x, class]"), set(kind, "[bee, cat]", keys, "id"));
    const auto known = datasets().build(others, "datasets/validation");
    CHECK(values_of<int64_t>(batch_of(*known, {0, 1})["class"]) == Numbers{1, 2});
  }
}

TEST_CASE("another mean than the training's is reported") {
  const ScratchFolder scratch;
  const std::string csv =
      fmt::format("{{class: Csv, path: {}}}", scratch.write("a.csv", "x\n1.5\n2.5\n"));
  const std::string standardized = fmt::format("{{class: Standardized, dataset: {}}}", csv);
  const auto notice = [&](const std::string& train, const std::string& validation,
                          const std::string& split) {
    return datasets().build(config_of(train, validation), "datasets/" + split)->notice();
  };
  CHECK(notice(standardized, standardized, "validation") ==
        "standardized by its own mean and deviation, not by those of the training: fit: train");
  const std::string fitted = fmt::format("{{class: Standardized, fit: train, dataset: {}}}", csv);
  CHECK(notice(standardized, fitted, "validation").empty());
  CHECK(notice(standardized, fitted, "train").empty());
  CHECK(notice(standardized, csv, "train") ==
        "standardized, and datasets/validation is not: datasets/validation: {class: Standardized, "
        "fit: train, dataset: ...}");
  CHECK(notice(csv, standardized, "validation") == "standardized, and datasets/train is not");
}

}  // namespace class_numbers_test
}  // namespace stepop
