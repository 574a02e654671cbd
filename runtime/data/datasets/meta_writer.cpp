#include "runtime/data/datasets/meta_writer.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/data/datasets/meta_labels.h"
#include "runtime/data/example_random.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// NumPy's name for a tensor's type.
std::string dtype_of(const at::Tensor& tensor, const std::string& key) {
  switch (tensor.scalar_type()) {
    case at::kBool:
      return "bool";
    case at::kByte:
      return "uint8";
    case at::kChar:
      return "int8";
    case at::kShort:
      return "int16";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    case at::kHalf:
      return "float16";
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kComplexFloat:
      return "complex64";
    case at::kComplexDouble:
      return "complex128";
    default:
      throw Error(fmt::format("\"{}\" is {}, a type that NumPy does not have", key,
                              describe_tensor(tensor)));
  }
}

bool is_image(const at::Tensor& tensor) {
  if (tensor.dim() != 3 || tensor.scalar_type() != at::kFloat || tensor.numel() == 0) return false;
  if (tensor.size(0) != 1 && tensor.size(0) != 3) return false;
  return tensor.ge(-1).logical_and(tensor.le(1)).all().item<bool>();
}

/// The rows of a text label as NumPy's UTF-32.
std::string utf32_rows(const std::vector<std::string>& texts, size_t& longest) {
  std::vector<std::u32string> rows;
  longest = 1;
  for (const auto& text : texts) {
    std::u32string& row = rows.emplace_back();
    for (size_t at = 0; at < text.size();) {
      const size_t size = std::max<size_t>(utf8_length(std::string_view(text).substr(at)), 1);
      const auto first = static_cast<unsigned char>(text[at]);
      char32_t character =
          size == 1 ? (first < 0x80 ? first : 0xfffd) : first & (0xff >> (size + 1));
      for (size_t i = 1; i < size; ++i) {
        character = character << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3f);
      }
      row += character;
      at += size;
    }
    longest = std::max(longest, row.size());
  }
  std::string bytes(rows.size() * longest * 4, '\0');
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(bytes.data() + i * longest * 4, rows[i].data(), rows[i].size() * 4);
  }
  return bytes;
}

/// Throws Error for a key that cannot be part of a file's name, or that has a special meaning
/// there.
void check_key(const std::string& key) {
  bool is_good = !key.empty() && key.find(':') == std::string::npos &&
                 key.find("-*-") == std::string::npos && key.find('\0') == std::string::npos;
  for (const auto& part : fs::path(key)) {
    is_good = is_good && part != "" && part != "." && part != ".." && part != "/";
  }
  if (is_good) return;
  throw Error(
      fmt::format("the key \"{}\" cannot be the name of a label; give it another one", key));
}

/// A key of the examples, while its file is written.
struct MetaColumn {
  bool is_image = false;
  bool is_text = false;
  std::vector<int64_t> shape = {};  ///< The shape of one example.
  std::string dtype = {};
  std::string part = {};  ///< The path of the file while the number of rows is not known.
  OpenFile file = {};
  std::vector<std::string> texts = {};
};

class MetaWriter {
 public:
  MetaWriter(std::string folder, std::string final_folder)
      : folder_(std::move(folder)), final_(std::move(final_folder)) {}

  void add(int64_t index, const Example& example) {
    for (const auto& [key, tensor] : example.tensors) add_tensor(index, key, tensor);
    for (const auto& [key, text] : example.texts) {
      column(index, key).is_text = true;
      columns_.at(key).texts.push_back(text);
    }
    if (example.tensors.size() + example.texts.size() == columns_.size()) return;
    throw Error(fmt::format("example {}: its keys are {}, {}; those before it had others", index,
                            example.tensors.key_list(), example.texts.key_list()));
  }

  void finish(int64_t count, const std::string& description,
              const OrderedMap<std::vector<std::string>>& class_names) {
    Value::Map kwargs;
    for (auto& [key, column] : columns_) {
      std::vector<int64_t> shape = {count};
      shape.insert(shape.end(), column.shape.begin(), column.shape.end());
      if (column.is_image || column.is_text) {
        size_t longest = 0;
        const std::string bytes = utf32_rows(column.texts, longest);
        const std::string name = column.is_image ? key + ":image" : key;
        write_file_atomically(
            label_path(meta_label_file(name, {count}, fmt::format("<U{}", longest))), bytes);
      } else {
        flush_file(column.file, column.part);
        fs::rename(column.part, label_path(meta_label_file(key, shape, column.dtype)));
      }
      if (column.is_image) {
        kwargs.set(key, Value::Map{{"support", "-1->1"}, {"root", final_}});
      }
    }
    Value::Map meta{{"description", description}};
    if (!kwargs.empty()) meta.set("loader_kwargs", kwargs);
    Value::Map names;
    for (const auto& [key, of_key] : class_names) {
      if (columns_.contains(key)) names.set(key, Value::List(of_key.begin(), of_key.end()));
    }
    if (!names.empty()) meta.set(kMetaClassNames, names);
    write_file_atomically(folder_ + "/meta.yaml", to_yaml(meta));
  }

 private:
  MetaColumn& column(int64_t index, const std::string& key) {
    const auto found = columns_.find(key);
    if (found != columns_.end()) return found->second;
    if (index == 0) {
      check_key(key);
      return columns_[key];
    }
    throw Error(fmt::format("example {}: has the key \"{}\", which those before it do not have",
                            index, key));
  }

  std::string label_path(const std::string& name) const {
    const std::string path = folder_ + "/labels/" + name;
    make_folders(fs::path(path).parent_path().string());
    return path;
  }

  void add_tensor(int64_t index, const std::string& key, const at::Tensor& tensor) {
    MetaColumn& made = column(index, key);
    if (index == 0) {
      made.is_image = is_image(tensor);
      made.shape = tensor.sizes().vec();
      if (!made.is_image) {
        made.dtype = dtype_of(tensor, key);
        made.part = label_path(key + ".part");
        made.file =
            open_file(made.part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, "write " + made.part);
      }
    }
    if (made.is_image) return add_image(index, key, tensor, made);
    if (tensor.sizes() != at::IntArrayRef(made.shape) || dtype_of(tensor, key) != made.dtype) {
      throw Error(
          fmt::format("example {}: \"{}\" is {}; those before it have another shape or type", index,
                      key, describe_tensor(tensor)));
    }
    const at::Tensor row = tensor.contiguous();
    const std::string_view bytes(static_cast<const char*>(row.const_data_ptr()), row.nbytes());
    size_t written = 0;
    if (const int failed = write_all(made.file, bytes, written); failed != 0) {
      fail_file("write " + made.part, failed);
    }
  }

  void add_image(int64_t index, const std::string& key, const at::Tensor& tensor,
                 MetaColumn& made) const {
    if (!is_image(tensor)) {
      throw Error(fmt::format("example {}: \"{}\" is {}; those before it are images in [-1, 1]",
                              index, key, describe_tensor(tensor)));
    }
    const std::string name = fmt::format("{}/{:08}.png", key, index);
    const at::Tensor bytes = tensor.mul(127.5).add(128).to(at::kByte);  // the same rounding as
                                                                        // to_byte
    if (index == 0) make_folders(fs::path(folder_ + "/" + name).parent_path().string());
    write_file_atomically(folder_ + "/" + name, encode_png(bytes.permute({1, 2, 0}).contiguous()));
    made.texts.push_back(name);
  }

  std::string folder_;
  std::string final_;  ///< The folder's path once it is complete.
  std::map<std::string, MetaColumn> columns_;
};

}  // namespace

void write_meta_folder(const Dataset& dataset, const std::string& folder,
                       const std::string& description,
                       const OrderedMap<std::vector<std::string>>& class_names,
                       const InterruptCheck& interrupt,
                       const std::function<void(int64_t)>& progress) {
  const std::string whole = fs::absolute(folder).lexically_normal().string();
  const std::string part = whole + ".part";
  if (fs::exists(whole)) throw Error(whole + " is there already; nothing was changed");
  fs::remove_all(part);  // left by a process that was killed
  make_folders(part + "/labels");
  MetaWriter writer(part, whole);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    if (interrupt) interrupt();
    Random random = random_of_fixed_example(i);
    Example example;
    try {
      example = dataset.get(i, random);
    } catch (...) {
      throw Error(fmt::format("example {}: {}", i, text_of_current_exception()));
    }
    writer.add(i, example);
    if (progress) progress(i + 1);
  }
  writer.finish(dataset.size(), description, class_names);
  rename_durably(part, whole);
}

}  // namespace stepop
