#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/text.h"
#include "runtime/core/formats/pickle_file.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/dataset_files.h"
#include "runtime/data/row_writer.h"

namespace stepop {
namespace {

constexpr int64_t kCifarPixels = int64_t{3} * 32 * 32;

/// One of the forms in which https://www.cs.toronto.edu/~kriz/cifar.html distributes CIFAR.
struct CifarForm {
  const char* name;
  const char* folder;  ///< The folder in its archive.
  bool is_100;
  bool is_pickled;
  std::vector<std::string> train;
  std::vector<std::string> test;
};

const std::array<CifarForm, 4>& cifar_forms() {
  static const std::array<CifarForm, 4> forms = {{
      {"CIFAR-10, binary version",
       "cifar-10-batches-bin",
       false,
       false,
       {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
        "data_batch_5.bin"},
       {"test_batch.bin"}},
      {"CIFAR-10, Python version",
       "cifar-10-batches-py",
       false,
       true,
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"},
       {"test_batch"}},
      {"CIFAR-100, binary version", "cifar-100-binary", true, false, {"train.bin"}, {"test.bin"}},
      {"CIFAR-100, Python version", "cifar-100-python", true, true, {"train"}, {"test"}},
  }};
  return forms;
}

/// The images and classes of one file.
struct CifarPart {
  std::string images;  ///< [N, 3, 32, 32]
  std::vector<int64_t> classes;
  std::vector<int64_t> coarse;  ///< For CIFAR-100 only.
};

void check_class(int64_t value, int64_t count, size_t example, const std::string& name) {
  if (value >= 0 && value < count) return;
  throw Error(fmt::format("{}: the class of image {} is {}; expected 0 to {}", name, example, value,
                          count - 1));
}

/// The file holds, for each image, its classes, a byte each, and then its pixels.
CifarPart read_binary(const std::string& bytes, bool is_100, const std::string& name) {
  const size_t labels = is_100 ? 2 : 1;
  const size_t record = labels + static_cast<size_t>(kCifarPixels);
  if (bytes.empty() || bytes.size() % record != 0) {
    throw Error(
        fmt::format("{}: expected images of {} bytes each, found {} bytes; copy or download "
                    "it again",
                    name, record, bytes.size()));
  }
  CifarPart part;
  part.images.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size(); at += record) {
    const auto label = [&](size_t i) { return static_cast<unsigned char>(bytes[at + i]); };
    if (is_100) part.coarse.push_back(label(0));
    part.classes.push_back(label(labels - 1));
    part.images.append(bytes, at + labels, static_cast<size_t>(kCifarPixels));
  }
  return part;
}

std::vector<int64_t> numbers_in(const PickleValue& dict, std::string_view key, int64_t rows,
                                const std::string& name) {
  const PickleValue* list = dict.find(key);
  std::vector<int64_t> numbers;
  for (const PickleValue* item : list != nullptr ? list->items : std::vector<PickleValue*>{}) {
    if (item->kind == PickleValue::Kind::kInt) numbers.push_back(item->number);
  }
  if (static_cast<int64_t>(numbers.size()) == rows) return numbers;
  throw Error(fmt::format("{}: expected {} numbers under \"{}\", found {}", name, rows, key,
                          numbers.size()));
}

/// The bytes of a NumPy array in a pickle. Throws Error that begins with `name` unless the array is
/// uint8 [rows, columns] in C order.
std::string_view pickled_bytes(const PickleValue& value, int64_t& rows, int64_t columns,
                               const std::string& name) {
  // state: (1, shape, dtype, is_fortran, bytes); dtype: numpy.dtype("u1", ...)
  const PickleValue* state = value.state;
  const bool is_array = value.kind == PickleValue::Kind::kObject && value.items.size() == 2 &&
                        value.items[0]->text.ends_with("multiarray _reconstruct") &&
                        state != nullptr && state->items.size() == 5;
  const auto item = [](const PickleValue* of, size_t i) -> const PickleValue* {
    return of != nullptr && i < of->items.size() ? of->items[i] : nullptr;
  };
  const PickleValue* shape = is_array ? item(state, 1) : nullptr;
  const PickleValue* type = is_array ? item(item(item(state, 2), 1), 0) : nullptr;
  const PickleValue* content = is_array ? item(state, 4) : nullptr;
  const bool fits = shape != nullptr && shape->items.size() == 2 && type != nullptr &&
                    (type->text == "u1" || type->text == "|u1") && state->items[3]->number == 0 &&
                    content->kind == PickleValue::Kind::kText &&
                    shape->items[1]->number == columns && shape->items[0]->number > 0 &&
                    content->text.size() / static_cast<size_t>(columns) ==
                        static_cast<size_t>(shape->items[0]->number) &&
                    content->text.size() % static_cast<size_t>(columns) == 0;
  if (!fits) {
    throw Error(fmt::format("{}: expected an array of NumPy, uint8 [N, {}]", name, columns));
  }
  rows = shape->items[0]->number;
  return content->text;
}

CifarPart read_pickled(const std::string& bytes, bool is_100, const std::string& name) {
  const Pickle pickle = read_pickle(bytes, name);
  const PickleValue* data = pickle.root->find("data");
  if (data == nullptr) throw Error(name + ": expected a dict with the key \"data\"");
  int64_t rows = 0;
  CifarPart part;
  part.images = pickled_bytes(*data, rows, kCifarPixels, name);
  part.classes = numbers_in(*pickle.root, is_100 ? "fine_labels" : "labels", rows, name);
  if (is_100) part.coarse = numbers_in(*pickle.root, "coarse_labels", rows, name);
  return part;
}

/// CIFAR-10 or CIFAR-100 as its site distributes it, in the binary or the Python version. `path` is
/// a folder with the files, a folder that holds the archive's folder, or the archive itself, .tar
/// or .tar.gz, which is read whole at each start. The images stay in memory as bytes. The Python
/// version is read as data: no code in it is run.
///
/// An example holds `image`, float [3, 32, 32] in [-1,
/// 1], `class`, int64 [], and for CIFAR-100 `coarse`, int64 [], its superclass. Throws Error with
/// the file's name when a file is missing or damaged.
class Cifar : public Dataset, public RowWriter {
 public:
  struct Params {
    Path path;
    std::string split = "train";

    void declare(Parameters& p) {
      p.require("path", path, "the folder, or the archive .tar.gz, as it comes");
      p.add("split", split, "train or test", one_of({"train", "test"}));
    }
  };

  Cifar(const Params& params, const Config& config) {
    const bool is_train = params.split == "train";
    const DatasetFiles files(params.path.text, config);
    const CifarForm& form = find_form(files, config, is_train);
    const std::string folder = form.folder;
    for (const auto& name : is_train ? form.train : form.test) {
      const auto [bytes, where] = files.read({name, folder + "/" + name});
      const CifarPart part = form.is_pickled ? read_pickled(bytes, form.is_100, where)
                                             : read_binary(bytes, form.is_100, where);
      for (size_t i = 0; i < part.classes.size(); ++i) {
        check_class(part.classes[i], form.is_100 ? 100 : 10, i, where);
        if (form.is_100) check_class(part.coarse[i], 20, i, where);
      }
      images_ += part.images;
      classes_.insert(classes_.end(), part.classes.begin(), part.classes.end());
      coarse_.insert(coarse_.end(), part.coarse.begin(), part.coarse.end());
    }
  }

  int64_t size() const override { return static_cast<int64_t>(classes_.size()); }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size());
    const auto place = static_cast<size_t>(index);
    at::Tensor image = at::empty({3, 32, 32}, at::kFloat);
    write_image(index, image.mutable_data_ptr<float>());
    Example example{
        .tensors = {{"image", image}, {"class", at::scalar_tensor(classes_[place], at::kLong)}},
        .texts = {}};
    if (!coarse_.empty()) {
      example.tensors.set("coarse", at::scalar_tensor(coarse_[place], at::kLong));
    }
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> /*randoms*/) const override {
    const auto count = static_cast<int64_t>(indices.size());
    at::Tensor images = at::empty({count, 3, 32, 32}, at::kFloat);
    auto* pixels = images.mutable_data_ptr<float>();
    for (const int64_t index : indices) {
      check_index(index, size());
      write_image(index, pixels);
      pixels += kCifarPixels;
    }
    OrderedMap<at::Tensor> tensors{{"image", images}, {"class", gathered(classes_, indices)}};
    if (!coarse_.empty()) tensors.set("coarse", gathered(coarse_, indices));
    return Batch(std::move(tensors), {}, {indices.begin(), indices.end()});
  }

  std::optional<BatchRows> rows_for(int64_t count) const override {
    BatchRows rows{.tensors = {{"image", at::empty({count, 3, 32, 32}, at::kFloat)},
                               {"class", at::empty({count}, at::kLong)}},
                   .texts = {}};
    if (!coarse_.empty()) rows.tensors.set("coarse", at::empty({count}, at::kLong));
    return rows;
  }

  void write_row(int64_t index, Random& /*random*/, int64_t row, BatchRows& rows) const override {
    check_index(index, size());
    const auto place = static_cast<size_t>(index);
    write_image(index, rows.at<float>("image", row));
    *rows.at<int64_t>("class", row) = classes_[place];
    if (!coarse_.empty()) *rows.at<int64_t>("coarse", row) = coarse_[place];
  }

  at::Tensor labels(std::string_view key) const override {
    if (key == "class") return tensor_of(classes_);
    if (key == "coarse" && !coarse_.empty()) return tensor_of(coarse_);
    return {};
  }

  std::vector<std::string> label_keys() const override {
    return coarse_.empty() ? std::vector<std::string>{"class"}
                           : std::vector<std::string>{"class", "coarse"};
  }

 private:
  /// The form whose files are present.
  static const CifarForm& find_form(const DatasetFiles& files, const Config& params,
                                    bool is_train) {
    std::vector<const CifarForm*> found;
    for (const CifarForm& form : cifar_forms()) {
      const std::string& first = (is_train ? form.train : form.test).front();
      // Other datasets have files named `train` and `test` too.
      const bool is_inside = files.has(std::string(form.folder) + "/" + first);
      const bool is_here =
          files.has(first) && (!form.is_100 || !form.is_pickled || files.has("meta"));
      if (is_inside || is_here) found.push_back(&form);
    }
    if (found.size() == 1) return *found[0];
    std::vector<std::string> names;
    if (found.empty()) {
      for (const CifarForm& form : cifar_forms()) names.push_back(form.folder);
      throw params.error("path", fmt::format("{} has none of the folders of CIFAR, {}",
                                             files.path(), list_text(names)));
    }
    for (const CifarForm* form : found) names.push_back(form->folder);
    throw params.error("path", fmt::format("{} has several of them: {}; name one: path: {}/{}",
                                           files.path(), list_text(names), files.path(), names[0]));
  }

  void write_image(int64_t index, float* pixels) const {
    from_bytes(reinterpret_cast<const uint8_t*>(images_.data()) + index * kCifarPixels, pixels,
               static_cast<size_t>(kCifarPixels));
  }

  static at::Tensor tensor_of(const std::vector<int64_t>& numbers) {
    at::Tensor tensor = at::empty({static_cast<int64_t>(numbers.size())}, at::kLong);
    std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<int64_t>());
    return tensor;
  }
  static at::Tensor gathered(const std::vector<int64_t>& all, std::span<const int64_t> indices) {
    std::vector<int64_t> numbers;
    for (const int64_t index : indices) numbers.push_back(all[static_cast<size_t>(index)]);
    return tensor_of(numbers);
  }

  std::string images_;  ///< uint8 [N, 3, 32, 32]
  std::vector<int64_t> classes_;
  std::vector<int64_t> coarse_;
};

STEPOP_REGISTER_DATASET(Cifar, {"CIFAR-10 or CIFAR-100 from the files of their site."});

}  // namespace
}  // namespace stepop
