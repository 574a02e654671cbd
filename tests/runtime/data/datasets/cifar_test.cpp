// Data sets as their sites hand them out: CIFAR, MNIST and CelebA, made up and small.
#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/data/dataset.h"
#include "tests/dataset_of.h"
#include "tests/fuzz.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace cifar_test {

/// Writes all four forms of CIFAR; pickles as Python 2 wrote them, with strings of bytes. Each was
/// read back by pickle.load(encoding="bytes"), as other libraries read them.
const char* const kWrite = R"(
import sys, os, io, struct, pickle, tarfile, numpy as np
root = sys.argv[1]
class Python2(pickle._Pickler):
    dispatch = dict(pickle._Pickler.dispatch)
    def text(self, value):
        value = value if isinstance(value, bytes) else value.encode()
        if len(value) < 256: self.write(b"U" + bytes([len(value)]) + value)
        else: self.write(b"T" + struct.pack("<i", len(value)) + value)
        self.memoize(value)
    dispatch[bytes] = text
    dispatch[str] = text
def dump(value):
    file = io.BytesIO()
    Python2(file, 2).dump(value)
    bytes_ = file.getvalue()
    again = pickle.loads(bytes_, encoding="bytes")
    assert (again[b"data"] == value["data"]).all() and list(again) == [k.encode() for k in value]
    return bytes_
def images(count, start):
    return ((np.arange(count * 3072).reshape(count, 3072) + start) % 256).astype("u1")
def put(name, bytes_):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(bytes_)
for part in range(1, 7):
    count = 4 if part < 6 else 3
    pixels = images(count, part)
    classes = [(i + part) % 10 for i in range(count)]
    name = f"data_batch_{part}" if part < 6 else "test_batch"
    put(f"ten/cifar-10-batches-py/{name}", dump({"data": pixels, "labels": classes, "batch_label": name, "filenames": ["x.png"] * count}))
    put(f"tenbin/cifar-10-batches-bin/{name}.bin", b"".join(bytes([c]) + p.tobytes() for c, p in zip(classes, pixels)))
for name, count in (("train", 5), ("test", 2)):
    pixels = images(count, 7)
    fine = [(i * 31) % 100 for i in range(count)]
    coarse = [(i * 7) % 20 for i in range(count)]
    put(f"hundred/cifar-100-python/{name}", dump({"data": pixels, "fine_labels": fine, "coarse_labels": coarse, "filenames": ["y.png"] * count}))
    put(f"hundredbin/cifar-100-binary/{name}.bin", b"".join(bytes([c, f]) + p.tobytes() for c, f, p in zip(coarse, fine, pixels)))
put("hundred/cifar-100-python/meta", b"")
for name, folder in (("py", "ten/cifar-10-batches-py"), ("bin", "tenbin/cifar-10-batches-bin")):
    with tarfile.open(os.path.join(root, f"cifar-{name}.tar.gz"), "w:gz") as tar:
        tar.add(os.path.join(root, folder), os.path.basename(folder))
)";

std::string cifar(const std::string& path, const std::string& more = "") {
  return fmt::format("{{class: Cifar, path: {}{}}}", path, more);
}

TEST_CASE("CIFAR-10 and CIFAR-100 are the same in all forms that their site has") {
  ScratchFolder folder;
  run_python(kWrite, {folder.path()});
  const auto ten = dataset_of(cifar(folder.path("ten")));
  REQUIRE(ten->size() == 20);
  const Example example = example_of(*ten, 5);  // the second of the second file
  CHECK(example.tensors.key_list() == "image, class");
  CHECK(example.tensors.at("class").item<int64_t>() == 3);
  CHECK(describe_tensor(example.tensors.at("image")) == "float32 [3, 32, 32]");
  // Byte (3072 + 1024 + 32 * 2 + 3 + 2) % 256 of the green plane, row 2, column 3.
  CHECK(example.tensors.at("image")[1][2][3].item<float>() == from_byte((3072 + 1024 + 69) % 256));
  for (const char* other : {"ten/cifar-10-batches-py", "tenbin", "tenbin/cifar-10-batches-bin",
                            "cifar-py.tar.gz", "cifar-bin.tar.gz"}) {
    CAPTURE(other);
    for (const char* split : {", split: train", ", split: test"}) {
      const auto expected = dataset_of(cifar(folder.path("ten"), split));
      const auto dataset = dataset_of(cifar(folder.path(other), split));
      REQUIRE(dataset->size() == expected->size());
      const Batch batch = batch_of(*dataset, {2, 0});
      CHECK(batch["image"].equal(batch_of(*expected, {2, 0})["image"]));
      CHECK(batch["image"][1].equal(example_of(*dataset, 0).tensors.at("image")));
      CHECK(dataset->labels("class").equal(expected->labels("class")));
    }
  }
  for (const char* other : {"hundred", "hundredbin", "hundred/cifar-100-python"}) {
    const auto hundred = dataset_of(cifar(folder.path(other)));
    CHECK(values_of<int64_t>(hundred->labels("class")) == std::vector<int64_t>{0, 31, 62, 93, 24});
    CHECK(values_of<int64_t>(batch_of(*hundred, {4, 1})["coarse"]) == std::vector<int64_t>{8, 7});
    CHECK(hundred->label_keys() == std::vector<std::string>{"class", "coarse"});
  }
}

TEST_CASE("a batch out of two CIFAR datasets equals their examples") {
  ScratchFolder folder;
  run_python(kWrite, {folder.path()});
  for (const char* form : {"ten", "hundred"}) {
    const std::string yaml = cifar(folder.path(form));
    const auto one = dataset_of(yaml);
    const auto both = dataset_of("{class: Concat, datasets: [" + yaml + ", " + yaml + "]}");
    const Batch batch = batch_of(*both, {one->size() + 1, 0});
    for (const auto& [row, index] : {std::pair<int64_t, int64_t>{0, 1}, {1, 0}}) {
      for (const auto& [key, value] : example_of(*one, index).tensors) {
        CHECK(batch[key].select(0, row).equal(value));
      }
    }
  }
}

TEST_CASE("a folder that is no CIFAR, and damaged files of one, are reported") {
  ScratchFolder folder;
  run_python(kWrite, {folder.path()});
  const auto message = [&](const std::string& path, const std::string& more = "") {
    return message_of([&] { dataset_of(cifar(path, more)); });
  };
  CHECK(message(folder.path()) ==
        "test.yaml:1: data/path: " + folder.path() +
            " has none of the folders of CIFAR, cifar-10-batches-bin, cifar-10-batches-py, "
            "cifar-100-binary, cifar-100-python");
  CHECK(message(folder.path("no")) ==
        "test.yaml:1: data/path: no such folder or archive: " + folder.path("no"));
  CHECK(message(folder.path("ten"), ", split: validation") ==
        "test.yaml:1: data/split: expected train or test, found \"validation\"");
  const std::string binary = folder.path("tenbin/cifar-10-batches-bin/");
  const std::string whole = read_plain_or_gzip(binary + "data_batch_2.bin");
  folder.write("tenbin/cifar-10-batches-bin/data_batch_2.bin", whole.substr(0, 100));
  CHECK(message(folder.path("tenbin")) ==
        folder.path("tenbin") +
            "/cifar-10-batches-bin/data_batch_2.bin: expected images of 3073 "
            "bytes each, found 100 bytes; copy or download it again");
  folder.write("tenbin/cifar-10-batches-bin/data_batch_2.bin", "\x0b" + whole.substr(1));
  CHECK(message(folder.path("tenbin")) ==
        folder.path("tenbin") +
            "/cifar-10-batches-bin/data_batch_2.bin: the class of image 0 is 11; expected 0 to 9");
  // Python would run this.
  folder.write("ten/cifar-10-batches-py/data_batch_1", "cos\nsystem\n(S'true'\ntR.");
  CHECK(message(folder.path("ten")).find("data_batch_1: not a pickle of plain data: byte ") !=
        std::string::npos);
}

TEST_CASE("mutated files of CIFAR are read or refused") {
  ScratchFolder folder;
  run_python(kWrite, {folder.path()});
  const std::string pickled = read_plain_or_gzip(folder.path("hundred/cifar-100-python/test"));
  const std::string archive = read_plain_or_gzip(folder.path("cifar-bin.tar.gz"));
  const uint64_t seed = fuzz_seed();
  ByteMutator mutator(seed,
                      {"]", "\x85", "(", "e", "q", "h", "R", "b", "\x8a\x08", "cos\nsystem\n"},
                      {"data", "numpy", "fine_labels", "ustar", "cifar"});
  FuzzWatch watch("CIFAR", seed);
  int read = 0;
  const uint64_t first = fuzz_first();
  for (uint64_t i = 0; i < first + fuzz_count(300); ++i) {
    const bool is_pickle = mutator.below(3) > 0;
    const std::string bytes = mutator.mutate(is_pickle ? pickled : archive);
    const std::string path =
        folder.write(is_pickle ? "hundred/cifar-100-python/test" : "a.tar", bytes);
    if (i < first) continue;
    watch.run(i, [&] {
      try {
        const auto dataset = dataset_of(is_pickle ? cifar(folder.path("hundred"), ", split: test")
                                                  : cifar(path, ", split: test"));
        example_of(*dataset, 0);
        ++read;
      } catch (const Error&) {
      }
    });
  }
  CHECK(read > 10);
}

TEST_CASE("MNIST and FashionMNIST are read from the folder of their files, by one name") {
  ScratchFolder folder;
  const std::string images("\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\2\0\xff\x80\x01", 20);
  const std::string labels("\0\0\x08\x01\0\0\0\2\7\3", 10);
  folder.write("raw/t10k-images-idx3-ubyte", images);
  folder.write("raw/t10k-labels-idx1-ubyte", labels);
  const auto dataset = dataset_of("{class: Mnist, path: " + folder.path() + ", split: test}");
  CHECK(values_of<int64_t>(dataset->labels("class")) == std::vector<int64_t>{7, 3});
  CHECK(values_of<float>(example_of(*dataset, 0).tensors.at("image")) == std::vector<float>{-1, 1});
  CHECK(message_of([&] { dataset_of("{class: Mnist, path: " + folder.path() + "}"); }) ==
        "test.yaml:1: data/path: " + folder.path() +
            " has no train-images-idx3-ubyte.gz, and no folder raw with it");
}

/// CelebA with four images of 6 x 4 pixels, each of one grey.
void write_celeba(const ScratchFolder& folder, const std::string& images) {
  std::string parts;
  std::string attributes = "4\n";
  std::string identities;
  std::string landmarks = "4\nlefteye_x lefteye_y righteye_x ...\n";
  for (int i = 0; i < 40; ++i) attributes += fmt::format("A{} ", i);
  attributes += "\n";
  for (int i = 0; i < 4; ++i) {
    const std::string name = fmt::format("00000{}.jpg", i);
    folder.write(images + "/" + name, encode_png(at::full({6, 4, 3}, 50 * i, at::kByte)));
    parts += fmt::format("{} {}\n", name, i == 3 ? 1 : 0);
    attributes += name + " ";
    for (int j = 0; j < 40; ++j) attributes += j == i ? " 1 " : "-1 ";
    attributes += "\n";
    identities += fmt::format("{} {}\n", name, 2000 + i);
    landmarks += fmt::format("{} 1 2  3 4 5 6 7 8 9 {}\n", name, i);
  }
  folder.write("Eval/list_eval_partition.txt", parts);
  folder.write("Anno/list_attr_celeba.txt", attributes);
  folder.write("Anno/identity_CelebA.txt", identities);
  folder.write("Anno/list_landmarks_align_celeba.txt", landmarks);
}

TEST_CASE("CelebA is read from the folders of its site, its images unpacked or not") {
  ScratchFolder folder;
  write_celeba(folder, "Img/img_align_celeba");
  const auto yaml = [&](const std::string& more) {
    return fmt::format("{{class: CelebA, path: {}{}}}", folder.path(), more);
  };
  const auto check = [&] {
    const auto train = dataset_of(yaml(", crop: 4"));
    REQUIRE(train->size() == 3);
    const Example example = example_of(*train, 2);
    CHECK(example.tensors.key_list() == "image, attributes, identity, landmarks");
    CHECK(describe_tensor(example.tensors.at("image")) == "float32 [3, 4, 4]");
    CHECK(example.tensors.at("image")[0][0][0].item<float>() == from_byte(100));
    CHECK(example.texts.at("path") == "000002.jpg");
    CHECK(example.tensors.at("attributes").nonzero().item<int64_t>() == 2);
    CHECK(example.tensors.at("landmarks")[4][1].item<float>() == 2);
    CHECK(values_of<int64_t>(train->labels("identity")) == std::vector<int64_t>{2000, 2001, 2002});
    CHECK(dataset_of(yaml(", split: validation"))->size() == 1);
    CHECK(describe_tensor(batch_of(*dataset_of(yaml(", split: all, size: [3, 2]")),
                                   {0, 3})["image"]) == "float32 [2, 3, 3, 2]");
  };
  check();
  run_python(
      "import sys, zipfile, glob, os\n"
      "os.chdir(sys.argv[1] + '/Img')\n"
      "with zipfile.ZipFile('img_align_celeba.zip', 'w') as z:\n"
      "  for i, p in enumerate(sorted(glob.glob('img_align_celeba/*'))):\n"
      "    z.write(p, compress_type=zipfile.ZIP_DEFLATED if i % 2 else zipfile.ZIP_STORED)\n",
      {folder.path()});
  std::filesystem::remove_all(folder.path("Img/img_align_celeba"));
  check();
  CHECK(message_of([&] { dataset_of(yaml(", split: test")); }) ==
        folder.path() + "/Eval/list_eval_partition.txt: no image is of the split test");
  folder.write("Anno/identity_CelebA.txt", "000000.jpg x\n");
  CHECK(message_of([&] { dataset_of(yaml("")); }) ==
        folder.path() + "/Anno/identity_CelebA.txt:1: expected a whole number, found \"x\"");
}

}  // namespace cifar_test
}  // namespace stepop
