#include "runtime/core/formats/torch_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/unpack_limit.h"
#include "runtime/core/formats/pickle_file.h"
#include "runtime/core/formats/torch_storages.h"

namespace stepop {
namespace {

using Kind = PickleValue::Kind;

constexpr int kDeepest = 64;
constexpr size_t kMostTensors = 1'000'000;
/// NumPy and the loops of PyTorch have as many.
constexpr size_t kMostDimensions = 64;

class TorchFile {
 public:
  explicit TorchFile(const std::string& path) : path_(path), storages_(path) {}

  TorchCheckpoint read() {
    const Pickle pickle = storages_.read();
    most_items_ = std::max(kMostTensors, 2 * pickle.size);
    most_name_bytes_ = std::max<size_t>(100'000'000, 16 * pickle.size);
    const PickleValue& root = *pickle.root;
    if (root.kind == Kind::kObject && !is_tensor(root)) {
      fail(fmt::format("it holds an object of the class {}, which only Python can make; {}",
                       class_name(*root.items[0]), kTorchSaveHelp));
    }
    if (root.kind != Kind::kDict)
      fail(std::string("it holds no dict of tensors; ") + kTorchSaveHelp);
    add(root, "", 0);
    if (checkpoint_.tensors.empty())
      fail(std::string("it holds a dict without tensors; ") + kTorchSaveHelp);
    storages_.check_size();
    return std::move(checkpoint_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(path_ + ": " + what); }
  [[noreturn]] void fail_at(const std::string& name, const std::string& what) const {
    fail(shortened(name, 200) + ": " + what);
  }

  static std::string_view maker_of(const PickleValue& value) {
    return value.kind == Kind::kObject ? std::string_view(value.items[0]->text) : "";
  }
  static bool is_tensor(const PickleValue& value) {
    const std::string_view maker = maker_of(value);
    return maker.starts_with("torch._utils _rebuild_") ||
           maker == "torch._tensor _rebuild_from_type_v2";
  }

  /// Adds the tensors in a dict, whose name is `name`. A dict can be in many places, so that a
  /// small file has any number of items and of names: both are counted.
  void add(const PickleValue& dict, const std::string& name, int depth) {
    if (depth > kDeepest) fail("dicts that are nested too deeply");
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      if (++items_ > most_items_) {
        fail("its dicts are in each other too often; it is damaged, or made to take time");
      }
      const PickleValue& key = *dict.items[i];
      const PickleValue& value = *dict.items[i + 1];
      if (key.kind != Kind::kText && key.kind != Kind::kInt) continue;
      if (value.kind == Kind::kDict) {
        add(value, name_in(name, key), depth + 1);
      } else if (is_tensor(value)) {
        if (checkpoint_.tensors.size() >= kMostTensors) fail("too many tensors");
        const std::string whole = name_in(name, key);
        checkpoint_.tensors[whole] = tensor_of(value, whole, depth);
        checkpoint_.names.push_back(whole);
      } else if (value.kind == Kind::kList && key.text == "param_groups") {
        add_groups(value, name);
      }
    }
  }

  /// Adds the groups of an optimizer, dicts with a list `params`.
  void add_groups(const PickleValue& list, const std::string& name) {
    std::vector<size_t>& sizes = checkpoint_.parameter_groups[name];
    sizes.clear();
    for (const PickleValue* group : list.items) {
      const PickleValue* params = group->kind == Kind::kDict ? group->find("params") : nullptr;
      sizes.push_back(params != nullptr ? params->items.size() : 0);
    }
  }

  /// The name of what is under `key` in the dict `name`.
  std::string name_in(const std::string& name, const PickleValue& key) {
    const std::string part = key.kind == Kind::kText ? key.text : std::to_string(key.number);
    name_bytes_ += name.size() + 1 + part.size();
    if (name_bytes_ > most_name_bytes_) {
      fail("the names of its tensors fill the memory; it is damaged, or made to do so");
    }
    return name.empty() ? part : name + "." + part;
  }

  at::Tensor tensor_of(const PickleValue& value, const std::string& name, int depth) {
    const std::string_view maker = maker_of(value);
    const auto& arguments = value.items[1]->items;
    const auto refuse = [&]() {
      fail_at(name, fmt::format("a tensor that {} makes, which is not read",
                                class_name(*value.items[0])));
    };
    if (maker == "torch._tensor _rebuild_from_type_v2" && arguments.size() >= 3) {
      const PickleValue inner{.kind = Kind::kObject, .items = {arguments[0], arguments[2]}};
      if (depth > kDeepest || arguments[0]->kind != Kind::kName || !is_tensor(inner)) refuse();
      return tensor_of(inner, name, depth + 1);
    }
    if (maker.starts_with("torch._utils _rebuild_parameter") && !arguments.empty()) {
      if (depth > kDeepest || !is_tensor(*arguments[0])) refuse();
      return tensor_of(*arguments[0], name, depth + 1);
    }
    const bool is_plain =
        maker == "torch._utils _rebuild_tensor_v2" || maker == "torch._utils _rebuild_tensor";
    if (!is_plain || arguments.size() < 4 || arguments[0]->kind != Kind::kOutside) refuse();
    at::Tensor tensor = view_of(storages_.find(*arguments[0]), *arguments[1], arguments[2]->items,
                                arguments[3]->items, name);
    return is_negated(arguments, name) ? copied(tensor.neg()) : tensor;
  }

  /// Whether the values are stored with the other sign, as those of `torch._neg_view`: the seventh
  /// argument is a dict of what a storage does not say.
  bool is_negated(const std::vector<PickleValue*>& arguments, const std::string& name) const {
    constexpr size_t kMetadata = 6;
    if (arguments.size() <= kMetadata || arguments[kMetadata]->kind == Kind::kNone) return false;
    const PickleValue& metadata = *arguments[kMetadata];
    const bool is_short = metadata.kind == Kind::kDict && metadata.items.size() <= 2;
    const PickleValue* negated = is_short ? metadata.find("neg") : nullptr;
    if (!is_short || metadata.items.empty() != (negated == nullptr)) {
      fail_at(name, "a tensor with properties that are not read; clone() makes a plain one");
    }
    return negated != nullptr && negated->number != 0;
  }

  /// Counts a tensor that is a copy: many views of one storage would each become one.
  at::Tensor copied(at::Tensor tensor) {
    copied_ += static_cast<double>(tensor.nbytes());
    if (is_too_much_unpacked(copied_, static_cast<double>(storages_.file_size()))) {
      fail(fmt::format("its tensors take {}: {}", size_text(copied_), unpack_remedy(copied_)));
    }
    return tensor;
  }

  /// Checks that the view lies inside of its storage, and has no more values than that.
  at::Tensor view_of(const TorchStorages::Storage& storage, const PickleValue& offset,
                     const std::vector<PickleValue*>& sizes,
                     const std::vector<PickleValue*>& strides, const std::string& name) {
    std::vector<int64_t> shape;
    std::vector<int64_t> steps;
    int64_t last = offset.number;
    int64_t count = 1;
    if (sizes.size() > kMostDimensions) fail_at(name, "a tensor with too many dimensions");
    bool fits = sizes.size() == strides.size() && offset.kind == Kind::kInt && last >= 0;
    for (size_t i = 0; fits && i < sizes.size(); ++i) {
      const int64_t size = sizes[i]->number;
      const int64_t step = strides[i]->number;
      int64_t way = 0;
      fits = size >= 0 && step >= 0 && !__builtin_mul_overflow(count, size, &count) &&
             !__builtin_mul_overflow(std::max<int64_t>(size - 1, 0), step, &way) &&
             !__builtin_add_overflow(last, way, &last);
      shape.push_back(size);
      steps.push_back(step);
    }
    fits = fits && count <= storage.count && (count == 0 || last < storage.count);
    if (!fits) {
      fail_at(name,
              "a tensor that is larger than its storage; clone() makes an expanded one whole");
    }
    const at::TensorOptions options(storage.type);
    if (count == 0) return at::empty(shape, options);
    // No one writes to it: the pages of the file are mapped for reading.
    char* begin = const_cast<char*>(storage.bytes) +
                  static_cast<size_t>(offset.number) * c10::elementSize(storage.type);
    const at::Tensor view = at::from_blob(
        begin, shape, steps, [owner = storage.owner](void*) {}, options);
    if (view.is_contiguous()) return view;
    return copied(view.contiguous());
  }

  std::string path_;
  TorchStorages storages_;
  TorchCheckpoint checkpoint_;
  size_t items_ = 0;
  size_t most_items_ = 0;
  size_t name_bytes_ = 0;
  size_t most_name_bytes_ = 0;
  double copied_ = 0;  ///< Bytes of tensors that were not contiguous.
};

}  // namespace

State load_torch_file(const std::string& path) { return load_torch_checkpoint(path).tensors; }

TorchCheckpoint load_torch_checkpoint(const std::string& path) { return TorchFile(path).read(); }

}  // namespace stepop
