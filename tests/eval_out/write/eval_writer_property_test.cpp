#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "eval_out/read/eval_reader.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/core/base/random.h"
#include "tests/index_range.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace eval_writer_property_test {

/// A file of random arrays and, beside it, what must be in it: a line `kind|key|type|shape|bytes`
/// for each, the bytes in a file of their own.
class RandomEvaluation {
 public:
  RandomEvaluation(const ScratchFolder& folder, uint64_t seed)
      : folder_(folder),
        random_(seed),
        rows_(random_.below(40)),
        compression_(seed % 2 == 0 ? EvalCompression::kNone : EvalCompression::kGzip) {
    for (int64_t i = random_.below(6) + 1; i > 0; --i) add_array();
  }

  std::string write() {
    const std::string path = folder_.path("outputs.h5");
    EvalWriter writer(path, rows_, {}, {.compression = compression_});
    for (int64_t first = 0; first < rows_;) {
      const int64_t count = std::min(random_.below(9) + 1, rows_ - first);
      const std::vector<int64_t> indices = index_range(first, count);
      writer.write(slice(first, count), indices);
      first += count;
    }
    writer.finish();
    return path;
  }

  /// Not called for an evaluation without rows, whose file has no arrays.
  std::string expectation() const {
    std::string lines;
    for (const auto& [key, value] : all_.outputs) {
      const std::string name =
          fmt::format("expected-{}", std::count(lines.begin(), lines.end(), '\n'));
      if (const auto* tensor = std::get_if<at::Tensor>(&value)) {
        lines += line("tensor", key, *tensor, name);
      } else if (const auto* tensors = std::get_if<std::vector<at::Tensor>>(&value)) {
        std::vector<int64_t> lengths;
        for (const auto& example : *tensors) lengths.push_back(example.size(0));
        lines += line(fmt::format("{}", fmt::join(lengths, ",")), key, at::cat(*tensors), name);
      } else {
        const auto& texts = std::get<std::vector<std::string>>(value);
        folder_.write(name, fmt::format("{}\n", fmt::join(texts, "\n")));
        lines += fmt::format("text|{}||{}|{}\n", key, rows_, folder_.path(name));
      }
    }
    return folder_.write("expected.txt", lines);
  }

  int64_t rows() const { return rows_; }
  const EvalOutputs& all() const { return all_; }

 private:
  std::string line(const std::string& kind, const std::string& key, const at::Tensor& tensor,
                   const std::string& name) const {
    const at::Tensor values =
        (tensor.scalar_type() == at::kBFloat16 ? tensor.to(at::kFloat) : tensor).contiguous();
    folder_.write(name, {static_cast<const char*>(values.const_data_ptr()), values.nbytes()});
    return fmt::format("{}|{}|{}|{}|{}\n", kind, key,
                       c10::getDtypeNames(values.scalar_type()).first,
                       fmt::join(values.sizes(), ","), folder_.path(name));
  }

  std::string random_word() {
    static const std::vector<std::string> kParts{"a",    "b", "logits", "ä",
                                                 " x y", "𝄞", "values", "offsets"};
    return kParts[static_cast<size_t>(random_.below(static_cast<int64_t>(kParts.size())))];
  }

  at::Tensor random_tensor(at::ScalarType type, std::vector<int64_t> shape) {
    at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(type));
    auto* bytes = static_cast<uint8_t*>(tensor.mutable_data_ptr());
    for (size_t i = 0; i < tensor.nbytes(); ++i) {
      bytes[i] = static_cast<uint8_t>(type == at::kBool ? random_.below(2) : random_.below(256));
    }
    return tensor;
  }

  void add_array() {
    std::string key = random_word();
    for (int64_t depth = random_.below(3); depth > 0; --depth) key += "/" + random_word();
    for (const auto& [other, unused] : all_.outputs) {
      if (other == key || other.starts_with(key + "/") || key.starts_with(other + "/")) return;
    }
    constexpr std::array kTypes{at::kByte, at::kChar,         at::kShort,        at::kInt,
                                at::kLong, at::kUInt16,       at::kUInt32,       at::kUInt64,
                                at::kHalf, at::kBFloat16,     at::kFloat,        at::kDouble,
                                at::kBool, at::kComplexFloat, at::kComplexDouble};
    const at::ScalarType type = kTypes[static_cast<size_t>(random_.below(kTypes.size()))];
    std::vector<int64_t> shape{rows_};
    for (int64_t i = random_.below(4); i > 0; --i) shape.push_back(random_.below(5));
    switch (random_.below(3)) {
      case 0: {
        std::vector<std::string> texts;
        for (int64_t i = 0; i < rows_; ++i)
          texts.push_back(random_.below(3) == 0 ? "" : random_word());
        all_.outputs.set(key, texts);
        return;
      }
      case 1: {
        std::vector<at::Tensor> tensors;
        const int64_t longest = random_.below(3) == 0 ? 1 : random_.below(3000) + 1;
        for (int64_t i = 0; i < rows_; ++i) {
          shape[0] = random_.below(longest);
          tensors.push_back(random_tensor(type, shape));
        }
        all_.outputs.set(key, tensors);
        return;
      }
      default:
        all_.outputs.set(key, random_tensor(type, shape));
    }
  }

  EvalOutputs slice(int64_t first, int64_t count) const {
    EvalOutputs batch;
    const auto part = [&](const auto& all) {
      return std::decay_t<decltype(all)>(all.begin() + first, all.begin() + first + count);
    };
    for (const auto& [key, value] : all_.outputs) {
      if (const auto* tensor = std::get_if<at::Tensor>(&value)) {
        batch.outputs.set(key, tensor->slice(0, first, first + count));
      } else if (const auto* tensors = std::get_if<std::vector<at::Tensor>>(&value)) {
        batch.outputs.set(key, part(*tensors));
      } else {
        batch.outputs.set(key, part(std::get<std::vector<std::string>>(value)));
      }
    }
    return batch;
  }

  const ScratchFolder& folder_;
  Random random_;
  int64_t rows_;
  EvalCompression compression_;
  EvalOutputs all_;
};

const std::string kCompare = R"(
import sys, h5py, numpy as np
for path, expected in zip(sys.argv[1::2], sys.argv[2::2]):
    f = h5py.File(path, "r")
    found, keys = [], []
    def visit(name, item):
        if isinstance(item, h5py.Group) and "ragged" in item.attrs: found.append(name)
        elif isinstance(item, h5py.Dataset) and "ragged" not in item.parent.attrs: found.append(name)
    f["outputs"].visititems(visit)
    for line in open(expected, encoding="utf-8"):
        kind, key, dtype, shape, file = line.rstrip("\n").split("|")
        keys.append(key)
        shape = tuple(int(n) for n in shape.split(","))
        item = f["outputs"][key]
        if kind == "text":
            assert list(item.asstr()[()]) == open(file, encoding="utf-8").read().split("\n")[:-1], key
            continue
        if kind != "tensor":
            offsets = np.cumsum([0] + [int(n) for n in kind.split(",")])
            assert (item["offsets"][()] == offsets).all(), key
            item = item["values"]
        assert item.dtype == np.dtype(dtype) and item.shape == shape, (key, item, dtype, shape)
        assert item[()].tobytes() == open(file, "rb").read(), key
    assert sorted(found) == sorted(keys), (found, keys)
print("ok")
)";

TEST_CASE("random trees of keys, types and shapes are byte for byte what h5py reads") {
  std::vector<std::unique_ptr<ScratchFolder>> folders;
  std::vector<std::string> arguments;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    folders.push_back(std::make_unique<ScratchFolder>());
    RandomEvaluation evaluation(*folders.back(), seed);
    const std::string path = evaluation.write();
    if (evaluation.rows() == 0) continue;
    arguments.insert(arguments.end(), {path, evaluation.expectation()});

    const EvalFile file(path);
    CHECK(file.rows() == evaluation.rows());
    const int64_t first = file.rows() / 3;
    const int64_t count = file.rows() - first;
    for (const auto& [key, value] : evaluation.all().outputs) {
      CAPTURE(key);
      if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
        CHECK(file.read_texts("outputs/" + key, first, count) ==
              std::vector<std::string>(texts->begin() + first, texts->end()));
      } else if (const auto* tensors = std::get_if<std::vector<at::Tensor>>(&value)) {
        const auto read = file.read_ragged("outputs/" + key, first, count);
        for (size_t i = 0; i < read.size(); ++i) {
          CHECK(read[i].sizes() == (*tensors)[static_cast<size_t>(first) + i].sizes());
        }
      } else {
        const at::Tensor read = file.read("outputs/" + key, first, count);
        CHECK(read.sizes() == std::get<at::Tensor>(value).slice(0, first).sizes());
      }
    }
  }
  CHECK(run_python(kCompare, arguments) == "ok\n");
}

}  // namespace eval_writer_property_test
}  // namespace stepop
