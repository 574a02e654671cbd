#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/dataset.h"
#include "tests/eval_out/datasets/loaded.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace hdf5_dataset_test {

/// Seven examples in every layout that h5py has, and arrays that are none of examples.
const std::string kWrite = R"(
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1], "w")
rows = np.arange(7)
f["image"] = (rows[:, None, None] * 10 + np.arange(6).reshape(2, 3)).astype(">f4")
f.create_dataset("packed/x", data=rows[:, None] * 100 + np.arange(5), chunks=(3, 2), compression="gzip")
f["packed/flag"] = rows % 2 == 0
f["name"] = ["", "b", "ä", "d" * 300, "e", "f", "g"]
f["fixed"] = np.array([b"zero", b"one", b"", b"three", b"four", b"five", b"six"])
f["empty"] = np.zeros((7, 0), dtype=np.int16)
f["index"] = rows[::-1]
f["mean"] = np.zeros((2, 3))
f["version"] = 3
f["pairs"] = np.array([["a", "b"]] * 7, dtype=object)
f["here"] = h5py.SoftLink("/image")
)";

std::unique_ptr<Dataset> build(const std::string& yaml) {
  return datasets().build(Config(parse_yaml("d: " + yaml, {"test.yaml", 0})), "d");
}

Batch batch_of(const Dataset& dataset, const std::vector<int64_t>& indices) {
  std::vector<Random> randoms(indices.size(), Random(1));
  return load_batch(dataset, indices, randoms);
}

class File {
 public:
  File() : path(folder_.path("any.h5")) { run_python(kWrite, {path}); }
  std::unique_ptr<Dataset> dataset(const std::string& more = "") const {
    return build("{class: Hdf5, path: " + path + more + "}");
  }
  std::string error(const std::string& more) const {
    std::string text = message_of([&] { dataset(more); });
    for (size_t at = 0; (at = text.find(path)) != std::string::npos;) {
      text.replace(at, path.size(), "any.h5");
    }
    return text;
  }

 private:
  ScratchFolder folder_;

 public:
  std::string path;
};

TEST_CASE("all arrays that agree in their first dimension are examples, but not index") {
  const File file;
  const auto dataset = file.dataset();
  CHECK(dataset->size() == 7);
  const Batch batch = batch_of(*dataset, {5, 0, 5, 3});
  CHECK(batch.tensors().key_list() == "empty, image, packed/flag, packed/x, index");
  CHECK(batch.texts().key_list() == "fixed, name");
  CHECK(batch["image"].dtype() == at::kFloat);
  CHECK(at::equal(batch["image"][3], at::arange(30, 36, at::kFloat).view({2, 3})));
  CHECK(at::equal(batch["packed/x"][0], at::arange(500, 505)));
  CHECK(batch["packed/flag"].dtype() == at::kBool);
  CHECK_FALSE(batch["packed/flag"][2].item<bool>());
  CHECK(batch["empty"].sizes() == at::IntArrayRef{4, 0});
  CHECK(batch["empty"].dtype() == at::kShort);
  CHECK(at::equal(batch["index"], at::tensor({5, 0, 5, 3})));
  CHECK((batch.text("name") == std::vector<std::string>{"f", "", "f", std::string(300, 'd')}));
  CHECK((batch.text("fixed") == std::vector<std::string>{"five", "zero", "five", "three"}));
}

TEST_CASE("an example alone, any order and any cache give the same values") {
  const File file;
  const std::vector<std::vector<int64_t>> orders = {{0, 1, 2, 3, 4, 5, 6}, {2, 3, 4}, {6, 5, 4},
                                                    {4, 4, 0, 4, 1},       {3},       {}};
  const auto kept = file.dataset();
  // With 60 bytes the smallest arrays are kept and the others are read from the file.
  for (const std::string cache : {"0", "60", "1000"}) {
    const auto dataset = file.dataset(", cache_bytes: " + cache);
    for (const auto& order : orders) {
      const Batch expected = batch_of(*kept, order);
      const Batch batch = batch_of(*dataset, order);
      for (const auto& [key, value] : expected.tensors()) {
        CAPTURE(key);
        CHECK(at::equal(batch[key], value));
      }
      CHECK((batch.texts() == expected.texts()));
      for (size_t i = 0; i < order.size(); ++i) {
        Random random(1);
        const Example one = dataset->get(order[i], random);
        CHECK(at::equal(one.tensors.at("image"), expected["image"][static_cast<int64_t>(i)]));
        CHECK(at::equal(one.tensors.at("packed/x"), expected["packed/x"][static_cast<int64_t>(i)]));
        CHECK(one.texts.at("name") == expected.text("name")[i]);
      }
    }
  }
}

TEST_CASE("rows far apart and near in a large array are those that were asked for") {
  const ScratchFolder folder;
  const std::string path = folder.path("large.h5");
  run_python(R"(
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1], "w")
x = np.arange(30000, dtype=np.int64)[:, None] * 7 + np.arange(40)
f["flat"] = x
f.create_dataset("packed", data=x, chunks=(900, 40), compression="gzip")
)",
             {path});
  const auto dataset = build("{class: Hdf5, cache_bytes: 0, path: " + path + "}");
  std::vector<int64_t> indices;
  Random random(3);
  for (int i = 0; i < 300; ++i) indices.push_back(random.below(30000));
  for (int i = 0; i < 50; ++i) indices.push_back(20000 + 2 * (i % 40));
  const at::Tensor expected = at::tensor(indices).mul(7).unsqueeze(1).add(at::arange(40));
  const Batch batch = batch_of(*dataset, indices);
  CHECK(at::equal(batch["flat"], expected));
  CHECK(at::equal(batch["packed"], expected));
}

TEST_CASE("keys choose arrays and give them names") {
  const File file;
  const Batch mapped =
      batch_of(*file.dataset(", keys: {target: {x: /packed/x}, row: index, text: name}"), {1, 2});
  CHECK(mapped.tensors().key_list() == "target/x, row, index");
  CHECK(at::equal(mapped["row"], at::tensor({5, 4})));
  CHECK(mapped.text("text")[1] == "ä");
  const Batch listed = batch_of(*file.dataset(", keys: [/packed/x, fixed]"), {1, 2});
  CHECK(listed.tensors().key_list() == "packed/x, index");
  CHECK(listed.texts().key_list() == "fixed");
  CHECK(file.dataset(", keys: [mean]")->size() == 2);
}

TEST_CASE("labels are there for arrays in memory and for single numbers") {
  const File file;
  for (const std::string cache : {"0", "1000000"}) {
    const auto dataset = file.dataset(", cache_bytes: " + cache);
    CHECK(at::equal(dataset->labels("packed/flag"), at::arange(7).remainder(2).eq(0)));
    CHECK(dataset->labels("image").defined() == (cache != "0"));
    CHECK_FALSE(dataset->labels("name").defined());
    CHECK_FALSE(dataset->labels("nothing").defined());
  }
}

TEST_CASE("the number of workers changes no bit, cached or not") {
  const File file;
  for (const std::string cache : {"0", "1000000"}) {
    const auto dataset = file.dataset(", cache_bytes: " + cache);
    const std::string bytes = loaded_bytes(*dataset, 0);
    CHECK(bytes.size() > 1000);
    CHECK((loaded_bytes(*dataset, 1) == bytes));
    CHECK((loaded_bytes(*dataset, 4) == bytes));
  }
}

TEST_CASE("several threads may read one file") {
  const File file;
  const auto dataset = file.dataset(", cache_bytes: 0");
  const Batch expected = batch_of(*dataset, {6, 1, 3});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const Batch batch = batch_of(*dataset, {6, 1, 3});
        wrong[t] += at::equal(batch["packed/x"], expected["packed/x"]) ? 0 : 1;
        wrong[t] += batch.texts() == expected.texts() ? 0 : 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK((wrong == std::vector<int>(4, 0)));
}

const std::string kArrays =
    "there are: empty int16 [7, 0], fixed text [7], image float32 [7, 2, 3], index int64 [7], mean "
    "float64 [2, 3], name text [7], packed/flag bool [7], packed/x int64 [7, 5], pairs text [7, "
    "2], version int64 []";

TEST_CASE("a wrong key is reported with the arrays that there are") {
  const File file;
  CHECK(file.error(", keys: {image: img}") ==
        "test.yaml:1: d/keys/image: any.h5 has no array \"img\"; " + kArrays);
  CHECK(file.error(", keys: [packed]") ==
        "test.yaml:1: d/keys/0: any.h5 has no array \"packed\"; " + kArrays);
  CHECK(file.error(", keys: [pairs]") ==
        "test.yaml:1: d/keys/0: any.h5: pairs text [7, 2] cannot be split into examples; an array "
        "of numbers is [N, ...], one of text [N]");
  CHECK(file.error(", keys: [version]") ==
        "test.yaml:1: d/keys/0: any.h5: version int64 [] cannot be split into examples; an array "
        "of numbers is [N, ...], one of text [N]");
  CHECK(file.error(", keys: [image, mean]") ==
        "test.yaml:1: d/keys: any.h5: image float32 [7, 2, 3] and mean float64 [2, 3] differ in "
        "their first dimension, the number of examples");
  CHECK(file.error(", keys: [index]") ==
        "test.yaml:1: d/keys/0: \"index\" is each example's place in the dataset; read the array "
        "under another key: keys: {row: index}");
  CHECK(file.error(", keys: [image, image]") == "test.yaml:1: d/keys/1: \"image\" is there twice");
  CHECK(file.error(", keys: {x: 3}") ==
        "test.yaml:1: d/keys/x: expected the name of an array, found 3");
  CHECK(file.error(", keys: []") == "test.yaml:1: d/keys: names no array");
  CHECK(file.error(", keys: image") ==
        "test.yaml:1: d/keys: expected a map from keys to arrays, such as {image: data/x}, or a "
        "list of arrays, found \"image\"");
}

TEST_CASE("a file in which nothing shows which arrays are the examples asks for keys") {
  const ScratchFolder folder;
  const auto error = [&](const std::string& name, const std::string& script) {
    const std::string path = folder.path(name);
    run_python("import sys, h5py, numpy as np\nf = h5py.File(sys.argv[1], 'w')\n" + script, {path});
    std::string text = message_of([&] { build("{class: Hdf5, path: " + path + "}"); });
    const size_t at = text.find(folder.path());
    if (at != std::string::npos) text.erase(at, folder.path().size() + 1);
    return text;
  };
  CHECK(error("tie.h5", "f['a'] = np.zeros((3, 2)); f['b'] = np.zeros(4)") ==
        "test.yaml:1: d/path: tie.h5: as many arrays have 3 rows as have 4, so nothing shows "
        "which are the examples; choose them with keys: [...]; there are: a float64 [3, 2], b "
        "float64 [4]");
  CHECK(error("none.h5", "f['a'] = 3") ==
        "test.yaml:1: d/path: none.h5 has no array of numbers [N, ...] or text [N]; there are: a "
        "int64 []");
  CHECK(error("nothing.h5", "") ==
        "test.yaml:1: d/path: nothing.h5 has no array of numbers [N, ...] or text [N]; there are: "
        "none");
  CHECK(error("empty.h5", "f['a'] = np.zeros((0, 2))") ==
        "empty.h5: holds no examples: its arrays have 0 rows");
}

TEST_CASE("a file that becomes shorter while it is read is reported, whatever its layout") {
  for (const char* options : {"", "chunks=(10, 64)"}) {
    CAPTURE(options);
    const ScratchFolder folder;
    const std::string path = folder.path("a.h5");
    run_python(
        "import sys, h5py, numpy as np\n"
        "with h5py.File(sys.argv[1], 'w') as f:\n"
        "    f.create_dataset('x', data=np.ones((1000, 64)), " +
            std::string(options) + ")\n",
        {path});
    const auto dataset = build("{class: Hdf5, path: " + path + ", cache_bytes: 0}");
    CHECK(batch_of(*dataset, {999, 3})["x"].sum().item<double>() == 128);
    std::filesystem::resize_file(path, 100'000);
    for (const std::vector<int64_t>& rows :
         {std::vector<int64_t>{999, 3}, std::vector<int64_t>{998, 999}}) {
      const std::string message = message_of([&] { batch_of(*dataset, rows); });
      CHECK(message.starts_with(path + ": became shorter while it was read: it has 100000 bytes"));
    }
  }
}

TEST_CASE("a pipe is no file to read") {
  const ScratchFolder folder;
  const std::string path = folder.path("pipe");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(message_of([&] { build("{class: Hdf5, path: " + path + "}"); }) ==
        "cannot read " + path + ": it is a pipe or a device, not a regular file");
}

TEST_CASE("a file that is missing, no HDF5 or cut short is reported") {
  const File file;
  const ScratchFolder folder;
  const auto error = [](const std::string& path) {
    return message_of([&] { build("{class: Hdf5, path: " + path + "}"); });
  };
  CHECK(error(folder / "no.h5") == "test.yaml:1: d/path: no such file: " + folder.path("no.h5"));
  const std::string text = folder.write("text.h5", "not at all");
  CHECK(error(text) == "cannot read " + text + ": it is not an HDF5 file");
  const std::string bytes = read_bytes(file.path);
  const std::string cut = folder.write("cut.h5", bytes.substr(0, bytes.size() / 2));
  CHECK(error(cut) == "cannot read " + cut + ": the file is cut short");
  const auto dataset = file.dataset();
  Random random(1);
  CHECK(message_of([&] { dataset->get(7, random); }) == "there is no example 7: the dataset has 7");
  CHECK(message_of([&] {
          batch_of(*dataset, {0, -1});
        }) == "there is no example -1: the dataset has 7");
}

}  // namespace hdf5_dataset_test
}  // namespace stepop
