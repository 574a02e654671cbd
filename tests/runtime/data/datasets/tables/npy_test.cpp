// Files of NumPy, written by NumPy.
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/formats/npy_file.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/dataset.h"
#include "tests/dataset_of.h"
#include "tests/fuzz.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace npy_test {

const char* const kWrite = R"(
import sys, os, numpy as np
folder = sys.argv[1]
path = lambda name: os.path.join(folder, name)
base = np.arange(24).reshape(4, 3, 2) * 3
for name in ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]:
    for order in "<>":
        for layout in "CF":
            array = np.array(base % 2 if name == "?" else base, dtype=order + name, order=layout)
            np.save(path(f"{'bool' if name == '?' else name}_{'le' if order == '<' else 'be'}_{layout}.npy"), array)
text = np.array(["a", "häß", "\U0001f600!", ""])
np.save(path("U.npy"), text)
np.save(path("U_be.npy"), text.astype(">U4"))
np.save(path("S.npy"), np.array([b"ab", b"c"]))
np.save(path("scalar.npy"), np.float32(3))
np.save(path("objects.npy"), np.array([1, "a", None], dtype=object), allow_pickle=True)
np.save(path("records.npy"), np.zeros(3, dtype=[("a", "i4"), ("b", "f4")]))
np.save(path("times.npy"), np.array(["2020-01-01"], dtype="datetime64[D]"))
np.save(path("long.npy"), np.zeros(3, dtype=np.longdouble))
np.save(path("huge.npy"), np.array([2**63 + 1], dtype="u8"))
np.save(path("none.npy"), np.zeros((0, 3)))
for version in [(1, 0), (2, 0), (3, 0)]:
    with open(path(f"version{version[0]}.npy"), "wb") as file:
        np.lib.format.write_array(file, base.astype("f4"), version=version)
arrays = {"x": base.astype("f4"), "y": np.arange(4), "name": np.array(list("abcd")), "more": np.ones(7)}
np.savez(path("stored.npz"), **arrays)
np.savez_compressed(path("packed.npz"), **arrays)
images = np.arange(2 * 4 * 5 * 3).reshape(2, 4, 5, 3).astype("u1")
np.save(path("images.npy"), images)
np.save(path("planes.npy"), images.transpose(0, 3, 1, 2))
)";

/// Files that NumPy wrote, in a folder.
struct Files {
  Files() { run_python(kWrite, {folder.path()}); }

  std::string path(const std::string& name) const { return folder.path(name); }
  std::string message(const std::string& yaml) const {
    return message_of([&] { dataset_of(yaml); });
  }

  ScratchFolder folder;
};

TEST_CASE("NumPy's arrays of all types, byte orders and layouts are read") {
  const Files files;
  const at::Tensor base = at::arange(24).view({4, 3, 2}).mul(3);
  int count = 0;
  const std::vector<std::pair<std::string, at::ScalarType>> types = {
      {"bool", at::kBool},       {"i1", at::kChar},          {"i2", at::kShort},
      {"i4", at::kInt},          {"i8", at::kLong},          {"u1", at::kByte},
      {"u2", at::kInt},          {"u4", at::kLong},          {"u8", at::kLong},
      {"f2", at::kHalf},         {"f4", at::kFloat},         {"f8", at::kDouble},
      {"c8", at::kComplexFloat}, {"c16", at::kComplexDouble}};
  for (const auto& [name, type] : types) {
    for (const char* kind : {"le_C", "le_F", "be_C", "be_F"}) {
      CAPTURE(name);
      CAPTURE(kind);
      const StoredArray array = open_npy(files.path(fmt::format("{}_{}.npy", name, kind)));
      const at::Tensor expected = (type == at::kBool ? base.remainder(2) : base).to(type);
      CHECK(array.all().equal(expected));
      const std::vector<int64_t> rows{3, 0};
      CHECK(array.gather(rows).equal(expected.index_select(0, at::tensor(rows))));
      ++count;
    }
  }
  CHECK(count == 56);
  for (const char* name : {"version1.npy", "version2.npy", "version3.npy"}) {
    CHECK(open_npy(files.path(name)).all().equal(base.to(at::kFloat)));
  }
  const std::vector<int64_t> rows{0, 1, 2, 3};
  const std::vector<std::string> texts{"a", "h\u00e4\u00df", "\U0001f600!", ""};
  CHECK(open_npy(files.path("U.npy")).gather_texts(rows) == texts);
  CHECK(open_npy(files.path("U_be.npy")).gather_texts(rows) == texts);
  CHECK(open_npy(files.path("S.npy")).gather_texts(std::vector<int64_t>{1, 0}) ==
        std::vector<std::string>{"c", "ab"});
  CHECK(open_npy(files.path("scalar.npy")).all().item<float>() == 3);
}

TEST_CASE("arrays that no tensor holds are refused with what helps") {
  const Files files;
  const auto message = [&](const std::string& name) {
    return message_of([&] { open_npy(files.path(name)); });
  };
  CHECK(message("objects.npy") ==
        files.path("objects.npy") +
            ": its elements are \"|O\": Python objects, which are pickled and could run any code; "
            "store numbers or texts: np.save(path, np.array(list_of_equal_lengths)), or "
            "np.array(texts, dtype=str)");
  CHECK(message("records.npy") ==
        files.path("records.npy") +
            ": its elements are records; store each field as an array of its own: array['field']");
  CHECK(message("times.npy") ==
        files.path("times.npy") +
            ": its elements are \"<M8[D]\": times; store numbers: array.astype('int64')");
  CHECK(message("long.npy").find("convert it: array.astype('float32')") != std::string::npos);
  CHECK(message("stored.npz").ends_with("; this is a ZIP archive: name it .npz"));
  files.folder.write("cut.npy", read_plain_or_gzip(files.path("i8_le_C.npy")).substr(0, 200));
  CHECK(message("cut.npy") ==
        files.path("cut.npy") + ": cut short: int64 [4, 3, 2] needs 192 bytes, found 72 bytes");
  CHECK(message_of([&] { open_npy(files.path("huge.npy")).all(); }) ==
        files.path("huge.npy") + ": holds 9223372036854775809, which no int64 can be");
}

TEST_CASE("files of arrays are a dataset, row by row") {
  const Files files;
  const auto dataset = dataset_of(
      fmt::format("{{class: Npy, files: {{x: {}, label: {}, word: {}}}}}",
                  files.path("f8_be_F.npy"), files.path("u2_le_C.npy"), files.path("U.npy")));
  REQUIRE(dataset->size() == 4);
  const Example example = example_of(*dataset, 1);
  CHECK(describe_tensor(example.tensors.at("x")) == "float32 [3, 2]");
  CHECK(values_of<float>(example.tensors.at("x")) == std::vector<float>{18, 21, 24, 27, 30, 33});
  CHECK(describe_tensor(example.tensors.at("label")) == "int32 [3, 2]");
  CHECK(example.texts.at("word") == "h\u00e4\u00df");
  const Batch batch = batch_of(*dataset, {2, 0});
  CHECK(batch["x"][1].equal(example_of(*dataset, 0).tensors.at("x")));
  CHECK(batch.text("word") == std::vector<std::string>{"\U0001f600!", "a"});
  CHECK(dataset->label_keys() == std::vector<std::string>{"x", "label"});
  CHECK(dataset->labels("x")[1].equal(example.tensors.at("x")));
  const auto one =
      dataset_of("{class: Npy, float64: true, path: " + files.path("f8_le_C.npy") + "}");
  CHECK(describe_tensor(example_of(*one, 0).tensors.at("f8_le_C")) == "float64 [3, 2]");
}

TEST_CASE("archives of arrays are a dataset, packed or not") {
  const Files files;
  for (const char* name : {"stored.npz", "packed.npz"}) {
    const auto dataset = dataset_of(fmt::format(
        "{{class: Npy, path: {}, keys: {{image: x, class: y, name: name}}}}", files.path(name)));
    const Batch batch = batch_of(*dataset, {3, 1});
    CHECK(values_of<int64_t>(batch["class"]) == std::vector<int64_t>{3, 1});
    CHECK(batch["image"][0][0][0].item<float>() == 54);
    CHECK(batch.text("name") == std::vector<std::string>{"d", "b"});
    CHECK(files.message("{class: Npy, path: " + files.path(name) + "}")
              .find("differ in their first dimension, the number of examples: float64 [7] and text "
                    "of 1 characters [4]; choose some with keys: {x: x_train}") !=
          std::string::npos);
  }
}

TEST_CASE("arrays of bytes are images where the config says so") {
  const Files files;
  for (const char* name : {"images.npy", "planes.npy"}) {
    const auto dataset = dataset_of(
        fmt::format("{{class: Npy, files: {{image: {}}}, images: [image]}}", files.path(name)));
    const at::Tensor image = example_of(*dataset, 0).tensors.at("image");
    CHECK(describe_tensor(image) == "float32 [3, 4, 5]");
    CHECK(image[1][0][2].item<float>() == doctest::Approx((7 - 127.5) / 127.5));
    CHECK(dataset->label_keys().empty());
  }
}

TEST_CASE("a mistake in the config of arrays is reported at its place") {
  const Files files;
  const std::string x = files.path("i4_le_C.npy");
  CHECK(files.message("{class: Npy, files: {x: " + x + "}, path: " + x + "}") ==
        "test.yaml:1: data/files: \"path\" is given as well");
  CHECK(files.message("{class: Npy, files: {x: " + files.path("no.npy") + "}}") ==
        "test.yaml:1: data/files/x: no such file: " + files.path("no.npy"));
  CHECK(files.message("{class: Npy, files: {index: " + x + "}}") ==
        "test.yaml:1: data: " + x +
            ": needs another key, as \"index\" is each example's place in the dataset: keys: {row: "
            "index}");
  CHECK(files.message("{class: Npy, path: " + files.path("stored.npz") + ", keys: {x: xx}}") ==
        "test.yaml:1: data/keys/x: no array \"xx\"; there are: x, y, more, name");
  CHECK(files.message("{class: Npy, files: {x: " + x + "}, images: [x]}") ==
        "test.yaml:1: data/images: " + x +
            ": expected uint8 [N, H, W], [N, H, W, C] or [N, C, H, W], found int32 [4, 3, 2]");
  CHECK(files.message("{class: Npy, files: {x: " + x + ", y: " + x + "}, images: [image]}") ==
        "test.yaml:1: data/images: there is no key \"image\"; there are: x, y");
  CHECK(files.message("{class: Npy, files: {x: " + files.path("none.npy") + "}}") ==
        files.path("none.npy") + ": holds no examples");
  CHECK(files.message("{class: Npy, files: {x: " + files.path("scalar.npy") + "}}") ==
        files.path("scalar.npy") +
            ": float32 [] cannot be split into examples; numbers are [N, ...], texts [N]");
}

TEST_CASE("mutated files of NumPy are read or refused") {
  const Files files;
  ScratchFolder folder;
  std::vector<std::string> seeds;
  for (const char* name : {"f4_le_F.npy", "U.npy", "u8_be_C.npy", "stored.npz", "packed.npz"}) {
    seeds.push_back(read_plain_or_gzip(files.path(name)));
  }
  const uint64_t seed = fuzz_seed();
  ByteMutator mutator(seed,
                      {"'descr'", "<f8", "|O", "True", "(4,", "99999999999", ")", "PK\5\6",
                       "PK\1\2", "9223372036854775807"},
                      {"NUMPY", "PK\1\2", "PK\5\6", "descr"});
  FuzzWatch watch("NumPy", seed);
  int read = 0;
  const uint64_t first = fuzz_first();
  for (uint64_t i = 0; i < first + fuzz_count(600); ++i) {
    const size_t which = mutator.below(seeds.size());
    const bool is_archive = which >= 3;
    const std::string path =
        folder.write(is_archive ? "a.npz" : "a.npy", mutator.mutate(seeds[which]));
    if (i < first) continue;
    watch.run(i, [&] {
      try {
        auto arrays = is_archive ? open_npz(path) : std::map<std::string, StoredArray>{};
        if (!is_archive) arrays.emplace("a", open_npy(path));
        for (const auto& [name, array] : arrays) {
          std::vector<int64_t> rows;
          for (int64_t row = 0; row < std::min<int64_t>(array.rows(), 100); ++row) {
            rows.push_back(row);
          }
          if (array.type().is_text()) {
            array.gather_texts(rows);
          } else {
            array.gather(rows);
          }
        }
        ++read;
      } catch (const Error&) {
      }
    });
  }
  CHECK(read > 10);
}

}  // namespace npy_test
}  // namespace stepop
