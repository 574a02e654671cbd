#include "runtime/core/formats/torch_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/unpack_limit.h"
#include "runtime/core/formats/pickle_file.h"
#include "runtime/core/formats/zip_file.h"
#include "runtime/core/system/mapped_file.h"

namespace stepop {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kZip = "PK\x03\x04";
/// The number 0x1950a86a20f9469cfc6c as a pickle, with which the old format begins.
constexpr std::string_view kOld("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15);
constexpr int kDeepest = 64;
constexpr size_t kMostTensors = 1'000'000;
constexpr const char* kHelp = "torch.save(net.state_dict(), path) writes its weights";

/// The type of a storage's class, `torch FloatStorage`.
std::optional<at::ScalarType> type_of(std::string_view storage) {
  static const std::map<std::string_view, at::ScalarType> known = {
      {"torch FloatStorage", at::kFloat}, {"torch DoubleStorage", at::kDouble},
      {"torch HalfStorage", at::kHalf},   {"torch BFloat16Storage", at::kBFloat16},
      {"torch LongStorage", at::kLong},   {"torch IntStorage", at::kInt},
      {"torch ShortStorage", at::kShort}, {"torch CharStorage", at::kChar},
      {"torch ByteStorage", at::kByte},   {"torch BoolStorage", at::kBool}};
  const auto found = known.find(storage);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

/// `torch.nn.modules.linear.Linear`, for messages.
std::string class_name(const PickleValue& name) {
  std::string text = name.text;
  std::ranges::replace(text, ' ', '.');
  return text;
}

/// The bytes of one storage.
struct Storage {
  at::ScalarType type = at::kFloat;
  const char* bytes = nullptr;
  int64_t count = 0;
  std::shared_ptr<void> owner = {};  ///< Keeps the bytes.
};

class TorchFile {
 public:
  explicit TorchFile(const std::string& path)
      : path_(path), file_(std::make_shared<MappedFile>(path)) {}

  State tensors() {
    const Pickle pickle = begins_with(kZip) ? read_archive() : read_old();
    const PickleValue& root = *pickle.root;
    if (root.kind == Kind::kObject && !is_tensor(root)) {
      fail(fmt::format("it holds an object of the class {}, which only Python can make; {}",
                       class_name(*root.items[0]), kHelp));
    }
    if (root.kind != Kind::kDict) fail(std::string("it holds no dict of tensors; ") + kHelp);
    add(root, "", 0);
    if (tensors_.empty()) fail(std::string("it holds a dict without tensors; ") + kHelp);
    file_->check_size();
    return std::move(tensors_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(path_ + ": " + what); }
  bool begins_with(std::string_view text) const { return file_->bytes().starts_with(text); }

  Pickle read_archive() {
    const std::vector<ZipEntry> entries = list_zip(file_->bytes(), path_);
    const ZipEntry* data = nullptr;
    for (const auto& entry : entries) {
      if (entry.name.ends_with("/constants.pkl")) {
        fail(std::string("it is a network with its code, as torch.jit.save writes it; ") + kHelp);
      }
      if (entry.name.ends_with("/data.pkl")) data = &entry;
    }
    if (data == nullptr) fail("it is a ZIP archive without data.pkl, so not of torch.save");
    const std::string folder = data->name.substr(0, data->name.rfind('/') + 1);
    for (const auto& entry : entries) {
      if (entry.name.starts_with(folder)) entries_[entry.name.substr(folder.size())] = entry;
    }
    if (entries_.contains("byteorder") && bytes_of(entries_.at("byteorder")) != "little") {
      fail("its numbers have another byte order than those of this machine");
    }
    return read_pickle(bytes_of(*data), path_);
  }

  std::string_view bytes_of(const ZipEntry& entry) const {
    if (!entry.is_stored) fail(entry.name + " is packed, which torch.save does not do");
    check_zip_entry(file_->bytes(), entry, path_ + ": " + entry.name);
    return file_->bytes().substr(entry.begin, entry.size);
  }

  /// The number of the format, its version, the system, the data, the storages' names: a pickle
  /// each. Then the storages in this order: the count of their values, and the values.
  Pickle read_old() {
    std::string_view rest = file_->bytes();
    const auto next = [&] {
      Pickle pickle = read_pickle(rest, path_);
      rest.remove_prefix(pickle.size);
      return pickle;
    };
    for (int i = 0; i < 3; ++i) next();
    Pickle data = next();
    const Pickle names = next();
    for (const PickleValue& value : data.values) {
      if (value.kind == Kind::kOutside) note_old_storage(value);
    }
    for (const auto* name : names.root->items) {
      const auto found = storages_.find(name->text);
      uint64_t count = 0;
      if (found == storages_.end() || rest.size() < sizeof count) fail("it is cut short");
      Storage& storage = found->second;
      std::memcpy(&count, rest.data(), sizeof count);
      rest.remove_prefix(sizeof count);
      const size_t width = c10::elementSize(storage.type);
      if (count != static_cast<uint64_t>(storage.count) || count > rest.size() / width) {
        fail("it is cut short");
      }
      // The values lie anywhere, and a processor wants them at multiples of their size.
      std::shared_ptr<char[]> copy(new char[std::max<size_t>(count * width, 1)]);
      std::memcpy(copy.get(), rest.data(), count * width);
      storage.bytes = copy.get();
      storage.owner = std::move(copy);
      rest.remove_prefix(count * width);
    }
    return data;
  }

  void note_old_storage(const PickleValue& outside) {
    const auto& [name, storage] = described(outside);
    if (outside.items[0]->items.size() > 5 && outside.items[0]->items[5]->kind != Kind::kNone) {
      fail(
          "it has a storage that is a part of another one; PyTorch 1.6 or newer saves it "
          "otherwise");
    }
    storages_[name] = storage;
  }

  /// The key, type and count of `('storage', type, key, device, count)`.
  std::pair<std::string, Storage> described(const PickleValue& outside) const {
    const auto& id = outside.items[0]->items;
    if (id.size() < 5 || id[0]->text != "storage" || id[1]->kind != Kind::kName ||
        id[2]->kind != Kind::kText || id[4]->kind != Kind::kInt || id[4]->number < 0) {
      fail("a storage that is not described as torch.save does");
    }
    const auto type = type_of(id[1]->text);
    if (!type) fail(fmt::format("a tensor in a {}, which is not read", class_name(*id[1])));
    return {id[2]->text, {.type = *type, .count = id[4]->number}};
  }

  const Storage& storage_of(const PickleValue& outside) {
    auto [name, described] = this->described(outside);
    const auto known = storages_.find(name);
    if (known != storages_.end()) {
      if (known->second.type != described.type || known->second.bytes == nullptr) {
        fail(fmt::format("the storage {} is missing, or has two types", name));
      }
      return known->second;
    }
    const auto entry = entries_.find("data/" + name);
    if (entry == entries_.end()) fail(fmt::format("the storage data/{} is missing", name));
    const std::string_view bytes = bytes_of(entry->second);
    const size_t width = c10::elementSize(described.type);
    if (bytes.size() / width < static_cast<size_t>(described.count)) {
      fail(fmt::format("the storage data/{} is cut short", name));
    }
    described.bytes = bytes.data();
    described.owner = file_;
    if (reinterpret_cast<uintptr_t>(bytes.data()) % width != 0) {
      std::shared_ptr<char[]> copy(new char[std::max<size_t>(bytes.size(), 1)]);
      std::memcpy(copy.get(), bytes.data(), bytes.size());
      described.bytes = copy.get();
      described.owner = std::move(copy);
    }
    return storages_.emplace(name, std::move(described)).first->second;
  }

  static std::string_view maker_of(const PickleValue& value) {
    return value.kind == Kind::kObject ? std::string_view(value.items[0]->text) : "";
  }
  static bool is_tensor(const PickleValue& value) {
    const std::string_view maker = maker_of(value);
    return maker.starts_with("torch._utils _rebuild_") ||
           maker == "torch._tensor _rebuild_from_type_v2";
  }

  /// Adds the tensors in a value, whose name is `name`.
  void add(const PickleValue& value, const std::string& name, int depth) {
    if (depth > kDeepest) fail("dicts that are nested too deeply");
    if (is_tensor(value)) {
      if (tensors_.size() >= kMostTensors) fail("too many tensors");
      tensors_[name] = tensor_of(value, name, depth);
      return;
    }
    if (value.kind != Kind::kDict) return;
    if (++dicts_ > kMostTensors) fail("too many dicts");
    for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
      const PickleValue& key = *value.items[i];
      if (key.kind != Kind::kText && key.kind != Kind::kInt) continue;
      const std::string part = key.kind == Kind::kText ? key.text : std::to_string(key.number);
      add(*value.items[i + 1], name.empty() ? part : name + "." + part, depth + 1);
    }
  }

  at::Tensor tensor_of(const PickleValue& value, const std::string& name, int depth) {
    const std::string_view maker = maker_of(value);
    const auto& arguments = value.items[1]->items;
    const auto refuse = [&]() {
      fail(fmt::format("{}: a tensor that {} makes, which is not read", name,
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
    at::Tensor tensor = view_of(storage_of(*arguments[0]), *arguments[1], arguments[2]->items,
                                arguments[3]->items, name);
    return is_negated(arguments, name) ? copied(tensor.neg()) : tensor;
  }

  /// Whether the values are stored with the other sign, as those of `torch._neg_view`: the seventh
  /// argument is a dict of what a storage does not say.
  bool is_negated(const std::vector<PickleValue*>& arguments, const std::string& name) const {
    constexpr size_t kMetadata = 6;
    if (arguments.size() <= kMetadata || arguments[kMetadata]->kind == Kind::kNone) return false;
    const PickleValue& metadata = *arguments[kMetadata];
    const PickleValue* negated = metadata.find("neg");
    const size_t known = negated == nullptr ? 0 : 1;
    if (metadata.kind != Kind::kDict || metadata.items.size() != 2 * known) {
      fail(name + ": a tensor with properties that are not read; clone() makes a plain one");
    }
    return negated != nullptr && negated->number != 0;
  }

  /// Counts a tensor that is a copy: many views of one storage would each become one.
  at::Tensor copied(at::Tensor tensor) {
    copied_ += static_cast<double>(tensor.nbytes());
    if (is_too_much_unpacked(copied_, static_cast<double>(file_->bytes().size()))) {
      fail(fmt::format("its tensors take {}: {}", size_text(copied_), unpack_remedy(copied_)));
    }
    return tensor;
  }

  /// Checks that the view lies inside of its storage, and has no more values than that.
  at::Tensor view_of(const Storage& storage, const PickleValue& offset,
                     const std::vector<PickleValue*>& sizes,
                     const std::vector<PickleValue*>& strides, const std::string& name) {
    std::vector<int64_t> shape;
    std::vector<int64_t> steps;
    int64_t last = offset.number;
    int64_t count = 1;
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
      fail(name +
           ": a tensor that is larger than its storage; clone() makes an expanded one whole");
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
  std::shared_ptr<MappedFile> file_;
  std::map<std::string, ZipEntry> entries_;  ///< By their names in the archive's folder.
  std::map<std::string, Storage> storages_;
  State tensors_;
  size_t dicts_ = 0;
  double copied_ = 0;  ///< Bytes of tensors that were not contiguous.
};

}  // namespace

bool is_torch_file(std::string_view beginning) {
  return beginning.starts_with(kZip) || beginning.starts_with(kOld);
}

State load_torch_file(const std::string& path) { return TorchFile(path).tensors(); }

}  // namespace stepop
