// What the values of an example become.

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/pictures/image_file.h"
#include "tests/message_of.h"
#include "tests/runtime/data/python/python_files.h"

namespace stepop {
namespace python_values_test {

/// Empty when the tensors have the same type, shape and bits.
std::string difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type()) {
    return fmt::format("{} and {}", c10::toString(a.scalar_type()), c10::toString(b.scalar_type()));
  }
  if (a.sizes() != b.sizes()) return fmt::format("{} and {} dimensions", a.dim(), b.dim());
  const auto bytes = [](const at::Tensor& x) { return x.contiguous().flatten().view(at::kByte); };
  return at::equal(bytes(a), bytes(b)) ? "" : "other values";
}

struct Row {
  std::string expression;  ///< In Python.
  at::Tensor expected;
};

/// Checks the values by themselves and in batches.
void check(const std::vector<Row>& rows) {
  std::string code = "import numpy, torch\nVALUES = [\n";
  for (const auto& row : rows) code += "    lambda: " + row.expression + ",\n";
  code +=
      "]\n"
      "class Values:\n"
      "    def __len__(self): return len(VALUES)\n"
      "    def __getitem__(self, index): return {'x': VALUES[index]()}\n";
  const PythonFiles files(code);
  const auto dataset = files.dataset("Values");
  REQUIRE(dataset->size() == static_cast<int64_t>(rows.size()));
  for (int64_t i = 0; i < dataset->size(); ++i) {
    const Row& row = rows[static_cast<size_t>(i)];
    CAPTURE(row.expression);
    const Example example = example_of(*dataset, i);
    CHECK(difference(example.tensors.at("x"), row.expected) == "");
    CHECK(example.texts.empty());
    const Batch batch = batch_of(*dataset, {i, i, i});
    CHECK(difference(batch["x"], at::stack({row.expected, row.expected, row.expected})) == "");
  }
}

at::Tensor numbers(at::ScalarType type) { return at::arange(6, at::kLong).view({2, 3}).to(type); }

TEST_CASE("tensors of PyTorch keep their type and shape") {
  std::vector<Row> rows;
  for (const auto& [name, type] :
       std::vector<std::pair<std::string, at::ScalarType>>{{"bool", at::kBool},
                                                           {"uint8", at::kByte},
                                                           {"int8", at::kChar},
                                                           {"int16", at::kShort},
                                                           {"int32", at::kInt},
                                                           {"int64", at::kLong},
                                                           {"uint16", at::kUInt16},
                                                           {"uint32", at::kUInt32},
                                                           {"uint64", at::kUInt64},
                                                           {"float16", at::kHalf},
                                                           {"bfloat16", at::kBFloat16},
                                                           {"float32", at::kFloat},
                                                           {"float64", at::kDouble},
                                                           {"complex64", at::kComplexFloat},
                                                           {"complex128", at::kComplexDouble}}) {
    rows.push_back({"torch.arange(6).view(2, 3).to(torch." + name + ")", numbers(type)});
    if (name != "bfloat16") {
      rows.push_back({"numpy.arange(6).reshape(2, 3).astype('" + name + "')", numbers(type)});
    }
  }
  check(rows);
}

TEST_CASE("tensors and arrays in any layout are read as what they say") {
  const at::Tensor table = at::arange(12, at::kLong).view({3, 4});
  check({
      {"torch.arange(12).view(3, 4).t()", table.t()},
      {"torch.arange(12).view(3, 4)[:, 1:3]", table.slice(1, 1, 3)},
      {"torch.ones(1, 3).expand(4, 3)", at::full({4, 3}, 1, at::kFloat)},
      {"torch.ones(2, requires_grad=True)", at::full({2}, 1, at::kFloat)},
      {"torch.nn.Parameter(torch.ones(2))", at::full({2}, 1, at::kFloat)},
      {"torch.tensor([1 + 2j]).conj()", at::complex(at::tensor({1.0F}), at::tensor({-2.0F}))},
      {"torch.zeros(0, 3)", at::empty({0, 3}, at::kFloat)},
      {"torch.tensor(7)", at::scalar_tensor(7, at::kLong)},
      {"numpy.arange(12).reshape(3, 4).T", table.t()},
      {"numpy.arange(12).reshape(3, 4)[::-1, ::2]", table.flip(0).slice(1, 0, 4, 2)},
      {"numpy.asfortranarray(numpy.arange(12).reshape(3, 4))", table},
      {"numpy.broadcast_to(numpy.float32(2), (2, 2))", at::full({2, 2}, 2, at::kFloat)},
      {"numpy.arange(6, dtype='>f4').reshape(2, 3)", numbers(at::kFloat)},
      {"numpy.arange(6, dtype='>i2').reshape(2, 3)", numbers(at::kShort)},
      {"numpy.arange(6, dtype='>u8').reshape(2, 3)", numbers(at::kUInt64)},
      {"numpy.zeros((3, 0), 'int8')", at::empty({3, 0}, at::kChar)},
      {"numpy.array(2.5)", at::scalar_tensor(2.5, at::kDouble)},
      {"numpy.float32(2.5)", at::scalar_tensor(2.5, at::kFloat)},
      {"numpy.int16(-3)", at::scalar_tensor(-3, at::kShort)},
      {"numpy.bool_(True)", at::scalar_tensor(true, at::kBool)},
  });
}

TEST_CASE("a batch may have arrays of NumPy and tensors of PyTorch under one key") {
  const PythonFiles files(R"(import numpy, torch
KINDS = [lambda i: numpy.full((2, 3), i, "float32"), lambda i: torch.full((2, 3), float(i)),
         lambda i: torch.full((3, 2), float(i)).t(), lambda i: torch._neg_view(torch.full((2, 3), -float(i))),
         lambda i: torch.full((3, 2), float(i)), lambda i: torch.zeros(2, 3, dtype=torch.bfloat16)]
class Mixed:
    def __len__(self): return len(KINDS)
    def __getitem__(self, index): return {"x": KINDS[index](index)}
)");
  const auto dataset = files.dataset("Mixed");
  for (const std::vector<int64_t>& indices :
       std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {1, 0}, {3, 2, 0}, {2, 1, 3}}) {
    const Batch batch = batch_of(*dataset, indices);
    for (size_t i = 0; i < indices.size(); ++i) {
      CHECK(difference(batch["x"][static_cast<int64_t>(i)],
                       at::full({2, 3}, indices[i], at::kFloat)) == "");
    }
  }
  const auto message = [&](const std::vector<int64_t>& indices) {
    return message_of([&] { batch_of(*dataset, indices); });
  };
  CHECK(
      message({0, 4}).starts_with("cannot put examples 0 and 4 into one batch: \"x\" is float32 "
                                  "[2, 3] in the first and float32 [3, 2] in the second; "));
  CHECK(
      message({0, 5}).starts_with("cannot put examples 0 and 5 into one batch: \"x\" is float32 "
                                  "[2, 3] in the first and bfloat16 [2, 3] in the second; "));
}

TEST_CASE("numbers become what default_collate makes of them; lists of numbers become tensors") {
  const at::Tensor nested = at::tensor({1, 2, 3, 4}, at::kLong).view({2, 2});
  check({
      {"7", at::scalar_tensor(7, at::kLong)},
      {"-2**63", at::scalar_tensor(INT64_MIN, at::kLong)},
      {"2.5", at::scalar_tensor(2.5, at::kDouble)},
      {"True", at::scalar_tensor(true, at::kBool)},
      {"[1, 2, 3]", at::tensor({1, 2, 3}, at::kLong)},
      {"(1, 2, 3)", at::tensor({1, 2, 3}, at::kLong)},
      {"[[1, 2], [3, 4]]", nested},
      {"([1, 2], (3, 4))", nested},
      {"[1, 2.5]", at::tensor({1.0, 2.5}, at::kDouble)},
      {"[True, False]", at::tensor({1, 0}, at::kLong).to(at::kBool)},
      {"[numpy.True_, numpy.False_]", at::tensor({1, 0}, at::kLong).to(at::kBool)},
      {"[numpy.float32(1), numpy.float32(2)]", at::tensor({1.0F, 2.0F})},
      {"[]", at::empty({0}, at::kDouble)},
  });
}

constexpr const char* kImages = R"(
import numpy
from PIL import Image

class Images:
    def __init__(self, folder):
        random = numpy.random.default_rng(3)
        grey, colour, alpha, cmyk = (random.integers(0, 256, (9, 7) + shape, "uint8") for shape in ((), (3,), (4,), (4,)))
        wide = random.integers(0, 65536, (9, 7)).astype("uint16")
        palette = Image.fromarray(colour).convert("P", palette=Image.Palette.ADAPTIVE, colors=16)
        images = {
            "1": Image.fromarray(grey).convert("1"), "L": Image.fromarray(grey),
            "LA": Image.merge("LA", (Image.fromarray(grey), Image.fromarray(alpha[:, :, 3].copy()))),
            "P": palette, "RGB": Image.fromarray(colour), "RGBA": Image.fromarray(alpha), "I;16": Image.fromarray(wide)}
        for mode, image in images.items():
            image.save("%s/%s.png" % (folder, mode))
        palette.save("%s/P transparent.png" % folder, transparency=3)
        Image.fromarray(grey).save("%s/L transparent.png" % folder, transparency=int(grey[0, 0]))
        Image.fromarray(cmyk, "CMYK").save("%s/CMYK.jpg" % folder)
        Image.fromarray(colour).save("%s/RGB.jpg" % folder)
        Image.fromarray(grey).save("%s/L.jpg" % folder)
        Image.fromarray(grey).convert("1").save("%s/1 transparent.png" % folder, transparency=0)
        self.folder = folder
        self.names = ["1.png", "L.png", "LA.png", "P.png", "RGB.png", "RGBA.png", "I;16.png", "P transparent.png",
                      "L transparent.png", "1 transparent.png", "RGB.jpg", "L.jpg", "CMYK.jpg"]
    def __len__(self): return len(self.names)
    def __getitem__(self, index):
        return Image.open(self.folder + "/" + self.names[index]), self.names[index]
)";

TEST_CASE("images of Pillow are those that stepop reads from the same files, bit for bit") {
  const PythonFiles files(kImages);
  const auto dataset =
      files.dataset("Images", "keys: [image, name], kwargs: {folder: " + files.path() + "}");
  for (int64_t i = 0; i < dataset->size(); ++i) {
    const Example example = example_of(*dataset, i);
    const std::string& name = example.texts.at("name");
    CAPTURE(name);
    const bool has_alpha = name == "LA.png" || name == "RGBA.png" || name == "P transparent.png";
    const at::Tensor& image = example.tensors.at("image");
    CHECK(difference(image, read_image(files / name, has_alpha ? 4 : 0)) == "");
    CHECK(difference(batch_of(*dataset, {i, i})["image"], at::stack({image, image})) == "");
  }
}

TEST_CASE("an image of Pillow with premultiplied alpha has the colours without it") {
  const PythonFiles files(R"(
from PIL import Image

class Images:
    def __len__(self): return 2
    def __getitem__(self, index):
        return Image.new("RGBa", (1, 1), (51,) * 4) if index else Image.new("La", (1, 1), (51, 51))
)");
  const at::Tensor expected = at::tensor({1.0F, 1.0F, 1.0F, -0.6F}).view({4, 1, 1});
  const auto dataset = files.dataset("Images", "keys: [image]");
  for (int64_t i = 0; i < 2; ++i) {
    CHECK(at::allclose(example_of(*dataset, i).tensors.at("image"), expected));
  }
}

constexpr const char* kShapes = R"(
import collections, dataclasses, pathlib
import numpy

Named = collections.namedtuple("Named", "image label")

@dataclasses.dataclass
class Item:
    image: object
    about: dict

class Mapping:  # such as a BatchEncoding of transformers
    def __init__(self, **values): self.values = values
    def keys(self): return self.values.keys()
    def items(self): return self.values.items()

EXAMPLES = [
    {"a": {"b": {"c": 1}, "d": "two"}, 5: numpy.zeros(2)},
    Named(numpy.zeros(3), 4),
    Item(numpy.zeros(3), {"name": "n", "sizes": [1, 2]}),
    Mapping(input_ids=[1, 2, 3], more=Mapping(x=1.5)),
    {"pair": (numpy.zeros(2), ["x", "y"]), "path": pathlib.Path("a") / "b.png", "text": "", "umlaut": "\u00e4 \U0001f600"},
    {"a": (1, "one"), "b": [2, numpy.zeros(4)], "c": ((1, 2), 3), "d": ((1, 2), "two")},
]

class Shapes:
    def __len__(self): return len(EXAMPLES)
    def __getitem__(self, index): return EXAMPLES[index]
)";

/// The keys with what they hold: `a/b int64 []` or `name "text"`.
std::string describe(const Example& example) {
  std::string text;
  for (const auto& [key, tensor] : example.tensors) {
    text += fmt::format("{} {} {}; ", key, c10::toString(tensor.scalar_type()), tensor.dim());
  }
  for (const auto& [key, value] : example.texts) text += fmt::format("{} \"{}\"; ", key, value);
  return text;
}

TEST_CASE("maps, named tuples, dataclasses and nested tuples become key/part; paths become texts") {
  const PythonFiles files(kShapes);
  const auto dataset = files.dataset("Shapes");
  const auto shape = [&](int64_t index) { return describe(example_of(*dataset, index)); };
  CHECK(shape(0) == "a/b/c Long 0; 5 Double 1; a/d \"two\"; ");
  CHECK(shape(1) == "image Double 1; label Long 0; ");
  CHECK(shape(2) == "image Double 1; about/sizes Long 1; about/name \"n\"; ");
  CHECK(shape(3) == "input_ids Long 1; more/x Double 0; ");
  CHECK(shape(4) ==
        "pair/0 Double 1; pair/1/0 \"x\"; pair/1/1 \"y\"; path \"a/b.png\"; text \"\"; "
        "umlaut \"\u00e4 \U0001f600\"; ");
  CHECK(shape(5) ==
        "a/0 Long 0; b/0 Long 0; b/1 Double 1; c/0 Long 1; c/1 Long 0; d/0 Long 1; a/1 \"one\"; "
        "d/1 \"two\"; ");
  CHECK(batch_of(*dataset, {4, 4}).text("umlaut").at(1) == "\u00e4 \U0001f600");
}

constexpr const char* kKeys = R"(
import numpy

class Tuples:
    def __len__(self): return 3
    def __getitem__(self, index):
        return numpy.full(2, index, "float32"), index, {"name": "n%d" % index, "more": (index, 2.5)}

class Maps:
    def __len__(self): return 3
    def __getitem__(self, index): return {"pixels": numpy.zeros(2), "about": {"label": index, "name": "n"}, "rest": 1}

class Single:
    def __len__(self): return 3
    def __getitem__(self, index): return numpy.full(2, index)

class Row:
    def __len__(self): return 3
    def __getitem__(self, index): return [index, 2, 3]
)";

TEST_CASE("keys name the parts of a tuple, leave parts out, and choose or rename those of a map") {
  const PythonFiles files(kKeys);
  const auto shape = [&](const std::string& name, const std::string& keys) {
    return describe(example_of(*files.dataset(name, keys.empty() ? "" : "keys: " + keys), 1));
  };
  CHECK(shape("Tuples", "[image, class, about]") ==
        "image Float 1; class Long 0; about/more Double 1; "
        "about/name \"n1\"; ");
  CHECK(shape("Tuples", "[image, null, null]") == "image Float 1; ");
  CHECK(shape("Tuples", "{x: 0, y: 1, name: 2/name}") == "x Float 1; y Long 0; name \"n1\"; ");
  CHECK(shape("Maps", "") ==
        "pixels Double 1; about/label Long 0; rest Long 0; about/name \"n\"; ");
  CHECK(shape("Maps", "[rest, about]") == "rest Long 0; about/label Long 0; about/name \"n\"; ");
  CHECK(shape("Maps", "{image: pixels, class: about/label}") == "image Double 1; class Long 0; ");
  CHECK(shape("Maps", "{a: about}") == "a/label Long 0; a/name \"n\"; ");
  CHECK(shape("Single", "[x]") == "x Long 1; ");
  CHECK(shape("Row", "[x]") == "x Long 1; ");
  CHECK(shape("Row", "[a, b, c]") == "a Long 0; b Long 0; c Long 0; ");
}

}  // namespace python_values_test
}  // namespace stepop
