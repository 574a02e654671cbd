#include "runtime/core/formats/torch_storages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kZip = "PK\x03\x04";
/// The number 0x1950a86a20f9469cfc6c as a pickle, with which the old format begins: since protocol
/// 2, with a frame around it since protocol 4; and before.
constexpr std::string_view kOldNumber("\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 13);
constexpr std::string_view kOldDigits = "L119547037146038801333356L\n.";
/// A longer key of a storage is refused: PyTorch counts storages, or takes an address.
constexpr size_t kLongestKey = 200;

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

}  // namespace

std::string class_name(const PickleValue& name) {
  std::string text = shortened(name.text, 200);
  std::ranges::replace(text, ' ', '.');
  return text;
}

TorchStorages::TorchStorages(const std::string& path)
    : path_(path), file_(std::make_shared<MappedFile>(path)) {}

void TorchStorages::fail(const std::string& what) const { throw Error(path_ + ": " + what); }

Pickle TorchStorages::read() {
  return file_->bytes().starts_with(kZip) ? read_archive() : read_old();
}

Pickle TorchStorages::read_archive() {
  const std::vector<ZipEntry> entries = list_zip(file_->bytes(), path_);
  const ZipEntry* data = nullptr;
  for (const auto& entry : entries) {
    if (entry.name.ends_with("/constants.pkl")) {
      fail(std::string("it is a network with its code, as torch.jit.save writes it; ") +
           kTorchSaveHelp);
    }
    if (entry.name.ends_with("models/model.json")) {
      fail(std::string("it is an exported network, as torch.export.save writes it, and a "
                       "model, not weights; ") +
           kTorchSaveHelp);
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

std::string_view TorchStorages::bytes_of(const ZipEntry& entry) const {
  if (!entry.is_stored) fail(entry.name + " is packed, which torch.save does not do");
  check_zip_entry(file_->bytes(), entry, path_ + ": " + entry.name);
  return file_->bytes().substr(entry.begin, entry.size);
}

/// The number of the format, its version, the system, the data, the storages' names: a pickle
/// each. Then the storages in this order: the count of their values, and the values.
Pickle TorchStorages::read_old() {
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
    if (value.kind == Kind::kOutside) note_old(value);
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

void TorchStorages::note_old(const PickleValue& outside) {
  const auto& [name, storage] = described(outside);
  if (outside.items[0]->items.size() > 5 && outside.items[0]->items[5]->kind != Kind::kNone) {
    fail(
        "it has a storage that is a part of another one; PyTorch 1.6 or newer saves it "
        "otherwise");
  }
  storages_[name] = storage;
}

/// The key, type and count of `('storage', type, key, device, count)`.
std::pair<std::string, TorchStorages::Storage> TorchStorages::described(
    const PickleValue& outside) const {
  const auto& id = outside.items[0]->items;
  if (id.size() < 5 || id[0]->text != "storage" || id[1]->kind != Kind::kName ||
      id[2]->kind != Kind::kText || id[2]->text.size() > kLongestKey || id[4]->kind != Kind::kInt ||
      id[4]->number < 0) {
    fail("a storage that is not described as torch.save does");
  }
  const auto type = type_of(id[1]->text);
  if (!type) fail(fmt::format("a tensor in a {}, which is not read", class_name(*id[1])));
  return {id[2]->text, {.type = *type, .count = id[4]->number}};
}

const TorchStorages::Storage& TorchStorages::find(const PickleValue& outside) {
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

bool is_torch_file(std::string_view beginning) {
  if (beginning.starts_with(kZip) || beginning.starts_with(kOldDigits)) return true;
  if (!beginning.starts_with('\x80') || beginning.size() < 2) return false;
  beginning.remove_prefix(2);
  constexpr size_t kFrame = 9;
  if (beginning.starts_with('\x95') && beginning.size() > kFrame) beginning.remove_prefix(kFrame);
  return beginning.starts_with(kOldNumber);
}

}  // namespace stepop
