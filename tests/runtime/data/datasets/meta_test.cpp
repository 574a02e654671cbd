// Folders with a meta.yaml, written as edflow's store_label_mmap does: the bytes of numpy.memmap.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/meta_writer.h"
#include "tests/dataset_of.h"
#include "tests/fuzz.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace meta_test {

const char* const kWrite = R"(
import sys, os, numpy as np
root = sys.argv[1]
def store(data, name):
    path = os.path.join(root, "labels", f"{name}-*-{'x'.join(str(n) for n in data.shape)}-*-{data.dtype}.npy")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    memmap = np.memmap(path, dtype=data.dtype, mode="w+", shape=data.shape)
    memmap[:] = data
    memmap.flush()
store(np.array([f"images/{i}.png" for i in range(3)]), "image:image")
store(np.array(["images/0.png"] * 3), "thumb")
store(np.arange(3), "pid")
store(np.array(["b", "a", "b"]), "kind:cat")
store(np.arange(18, dtype="float64").reshape(3, 3, 2) / 2, "pose/kps")
store(np.array([["x", "y"]] * 3), "words")
store(np.array(["arrays/a.npy"] * 3), "array:np")
os.makedirs(os.path.join(root, "arrays"))
np.save(os.path.join(root, "arrays/a.npy"), np.arange(4.0))
)";

const char* const kMeta = R"(
description: |
    Three examples.
loaders:
    pid: category
    thumb: image
loader_kwargs:
    image: {support: "-1->1"}
    thumb: {support: "0->255", resize_to: [2, 4], root: /no/longer/there}
    pid: {categories: [besser, pesser, Tilbich]}
    kind: {categories: {a: 7, b: 8}}
)";

struct Folder {
  Folder() {
    run_python(kWrite, {folder.path()});
    folder.write("meta.yaml", kMeta);
    for (int i = 0; i < 3; ++i) {
      folder.write(fmt::format("images/{}.png", i),
                   encode_png(at::full({8, 4, 3}, 100 + i, at::kByte)));
    }
  }
  std::string yaml(const std::string& more = "") const {
    return fmt::format("{{class: Meta, path: {}{}}}", folder.path(), more);
  }
  std::string message(const std::string& more = "") const {
    return message_of([&] { example_of(*dataset_of(yaml(more)), 1); });
  }
  std::string label(const std::string& name) const { return folder.path() + "/labels/" + name; }

  ScratchFolder folder;
};

TEST_CASE("a meta.yaml folder is read with its labels and loaders") {
  const Folder folder;
  const auto dataset = dataset_of(folder.yaml());
  REQUIRE(dataset->size() == 3);
  const Example example = example_of(*dataset, 1);
  CHECK(example.tensors.key_list() == "array, image, kind, pid_, pose/kps, thumb");
  CHECK(example.texts.key_list() == "array_, image_, kind_, pid, thumb_");
  CHECK(describe_tensor(example.tensors.at("image")) == "float32 [3, 8, 4]");
  CHECK(example.tensors.at("image")[2][7][3].item<float>() == from_byte(101));
  CHECK(describe_tensor(example.tensors.at("thumb")) == "uint8 [3, 4, 2]");
  CHECK(example.tensors.at("thumb")[0][0][0].item<int64_t>() == 100);
  CHECK(example.texts.at("pid") == "pesser");
  CHECK(example.tensors.at("pid_").item<int64_t>() == 1);
  CHECK(example.tensors.at("kind").item<int64_t>() == 7);
  CHECK(example.texts.at("image_") == "images/1.png");
  CHECK(values_of<float>(example.tensors.at("array")) == std::vector<float>{0, 1, 2, 3});
  CHECK(values_of<float>(example.tensors.at("pose/kps")) ==
        std::vector<float>{3, 3.5, 4, 4.5, 5, 5.5});
  CHECK(dataset->label_keys() == std::vector<std::string>{"pid_", "pose/kps"});
  CHECK(dataset->labels("pose/kps")[1].equal(example.tensors.at("pose/kps")));
  CHECK(dataset->notice() ==
        folder.folder.path() + ": left out words: only texts of one dimension, [N], are read");
  const Example part = example_of(*dataset_of(folder.yaml(", keys: [image, pid]")), 2);
  CHECK(part.tensors.key_list() == "image, pid_");
}

TEST_CASE("what is wrong with a meta.yaml folder is reported with its file") {
  const Folder folder;
  CHECK(folder.message(", keys: [imge]") ==
        "test.yaml:1: data/keys/0: " + folder.folder.path() +
            " has no label \"imge\"; it has: image, kind, pid, array, thumb, words, pose/kps");
  folder.folder.write("images/1.png", "GIF89a");
  CHECK(folder.message() ==
        folder.folder.path() +
            "/images/1.png: expected a PNG, JPEG or WebP, the file begins with 47 49 "
            "46 38");
  folder.folder.write("meta.yaml", "loaders: {pid: my.module.load}");
  CHECK(folder.message(", keys: [pid]") ==
        folder.folder.path() +
            ": the loader of \"pid\" is my.module.load, which is Python's own; here are image, np "
            "and category. Leave the label out with keys: [...], or write a dataset that reads it");
  folder.folder.write("meta.yaml",
                      "loader_kwargs: {image: {support: 0->2}, kind: {categories: {}}}");
  CHECK(folder.message() ==
        folder.folder.path() +
            "/meta.yaml: loader_kwargs/image/support: expected -1->1, 0->1 or 0->255, found "
            "\"0->2\"");
  folder.folder.write("labels/pid-*-3-*-int64.npy", "123");
  CHECK(folder.message() == folder.label("pid-*-3-*-int64.npy") +
                                ": cut short: int64 [3] needs 24 bytes, found 3 bytes");
  folder.folder.write("labels/pid-*-3-*-int64.npy", std::string(32, '\0'));
  CHECK(folder.message() == folder.label("pid-*-3-*-int64.npy") +
                                ": has 32 bytes; its name says int64 [3], which are 24");
  std::filesystem::rename(folder.label("pid-*-3-*-int64.npy"), folder.label("pid-*-4-*-int64.npy"));
  CHECK(folder.message() ==
        folder.folder.path() + ": the label \"array\" has 3 rows, \"pid\" has 4");
  folder.folder.write("labels/pid-*-4-*-object.npy", "x");
  CHECK(folder.message().find("Python objects, which are pickled") != std::string::npos);
}

const char* const kReadBack = R"(
import sys, os, re, glob, json, numpy as np
root = sys.argv[1]
labels = {}
for path in glob.glob(os.path.join(root, "labels", "**", "*.npy"), recursive=True):
    key, shape, dtype = os.path.basename(path)[:-len(".npy")].split("-*-")
    shape = tuple(int(n) for n in shape.split("x"))
    folder = os.path.relpath(os.path.dirname(path), os.path.join(root, "labels"))
    labels[key if folder == "." else folder + "/" + key] = np.memmap(path, mode="c", shape=shape, dtype=dtype)
for key in sorted(labels):
    print(key, labels[key].dtype, labels[key].tolist())
print(open(os.path.join(root, "meta.yaml")).read())
)";

TEST_CASE("any dataset is written as a folder that NumPy maps and Meta reads back") {
  const Folder source;
  const auto dataset = dataset_of(source.yaml(", keys: [image, pid, pose/kps]"));
  ScratchFolder folder;
  const std::string made = folder.path("made");
  write_meta_folder(*dataset, made, "three", {}, {}, {});
  CHECK_FALSE(std::filesystem::exists(made + ".part"));
  const std::string said = run_python(kReadBack, {made});
  CHECK(said ==
        "image:image <U18 ['image/00000000.png', 'image/00000001.png', 'image/00000002.png']\n"
        "image_ <U12 ['images/0.png', 'images/1.png', 'images/2.png']\n"
        "pid <U7 ['besser', 'pesser', 'Tilbich']\n"
        "pid_ int64 [0, 1, 2]\n"
        "pose/kps float32 [[[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]], [[3.0, 3.5], [4.0, 4.5], [5.0, "
        "5.5]], [[6.0, 6.5], [7.0, 7.5], [8.0, 8.5]]]\n"
        "description: three\nloader_kwargs:\n  image:\n    support: \"-1->1\"\n    root: " +
            made + "\n\n");
  const auto again = dataset_of("{class: Meta, path: " + made + ", keys: [image, pose/kps, pid]}");
  for (int64_t i = 0; i < 3; ++i) {
    const Example before = example_of(*dataset, i);
    const Example after = example_of(*again, i);
    CHECK(after.tensors.at("image").equal(before.tensors.at("image")));
    CHECK(after.tensors.at("pose/kps").equal(before.tensors.at("pose/kps")));
    CHECK(after.texts.at("pid") == before.texts.at("pid"));
  }
  const auto bad = dataset_of("{class: Csv, path: " + folder.write("a.csv", "../x\n1\n") + "}");
  CHECK(message_of([&] { write_meta_folder(*bad, folder.path("bad"), "x", {}, {}, {}); }) ==
        "the key \"../x\" cannot be the name of a label; give it another one");
  CHECK(message_of([&] { write_meta_folder(*dataset, made, "x", {}, {}, {}); }) ==
        made + " is there already; nothing was changed");
}

TEST_CASE("mutated labels are read or refused") {
  const Folder folder;
  const uint64_t seed = fuzz_seed();
  ByteMutator mutator(seed, {"x", "-*-", "<U9", "99999999999", ".npy", "|O", "int64"}, {});
  FuzzWatch watch("Meta", seed);
  const std::string bytes = read_plain_or_gzip(folder.label("pid-*-3-*-int64.npy"));
  int read = 0;
  const uint64_t first = fuzz_first();
  for (uint64_t i = 0; i < first + fuzz_count(200); ++i) {
    std::string name = "pid-*-3-*-int64.npy";
    const bool is_name = mutator.below(2) == 0;
    if (is_name) name = mutator.mutate(name);
    const std::string content = is_name ? bytes : mutator.mutate(bytes);
    if (i < first || name.find_first_of(std::string_view("/\0", 2)) != std::string::npos ||
        name.empty() || name.size() > 100 || name == "." || name == "..") {
      continue;
    }
    const std::string path = folder.folder.write("labels/" + name, content);
    watch.run(i, [&] {
      try {
        const auto dataset = dataset_of(folder.yaml());
        example_of(*dataset, 0);
        for (const auto& key : dataset->label_keys()) dataset->labels(key);
        ++read;
      } catch (const Error&) {
      }
    });
    std::filesystem::remove(path);
  }
  CHECK(read > 5);
}

}  // namespace meta_test
}  // namespace stepop
