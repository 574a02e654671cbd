#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/formats/pickle_file.h"
#include "runtime/core/formats/zip_file.h"
#include "runtime/core/system/mapped_file.h"

namespace stepop {

/// For messages about a file that has no tensors which can be read.
inline constexpr const char* kTorchSaveHelp =
    "torch.save(net.state_dict(), path) writes its weights";

/// Whether a file that begins with these bytes, 32 or more, was written by `torch.save`: a ZIP
/// archive, or the format from before PyTorch 1.6, of any protocol.
bool is_torch_file(std::string_view beginning);

/// `torch.nn.modules.linear.Linear`: the name of a class in a pickle, for messages.
std::string class_name(const PickleValue& name);

/// The two forms of a file of torch.save, a ZIP archive and the format from before PyTorch 1.6: the
/// pickle of what was saved, and the storages that its tensors are views of. Each call throws Error
/// that begins with the path for a file that is damaged.
class TorchStorages {
 public:
  /// The bytes of one storage.
  struct Storage {
    at::ScalarType type = at::kFloat;
    const char* bytes = nullptr;
    int64_t count = 0;
    std::shared_ptr<void> owner = {};  ///< Keeps the bytes.
  };

  explicit TorchStorages(const std::string& path);

  /// What was saved. Called once, before find().
  Pickle read();

  /// The storage that a value of the kind kOutside names.
  const Storage& find(const PickleValue& outside);

  size_t file_size() const { return file_->bytes().size(); }
  /// Throws Error if the file became shorter while it was read.
  void check_size() const { file_->check_size(); }

 private:
  [[noreturn]] void fail(const std::string& what) const;
  Pickle read_archive();
  Pickle read_old();
  std::string_view bytes_of(const ZipEntry& entry) const;
  void note_old(const PickleValue& outside);
  std::pair<std::string, Storage> described(const PickleValue& outside) const;

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  std::map<std::string, ZipEntry> entries_;  ///< By their names in the archive's folder.
  std::map<std::string, Storage> storages_;
};

}  // namespace stepop
