#include "models/exported/exported_file.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/formats/json_file.h"
#include "runtime/core/formats/zip_file.h"
#include "runtime/core/system/mapped_file.h"

namespace stepop {

at::ScalarType exported_type(int64_t number) {
  static const std::map<int64_t, at::ScalarType> types = {
      {1, at::kByte},          {2, at::kChar},           {3, at::kShort},  {4, at::kInt},
      {5, at::kLong},          {6, at::kHalf},           {7, at::kFloat},  {8, at::kDouble},
      {10, at::kComplexFloat}, {11, at::kComplexDouble}, {12, at::kBool},  {13, at::kBFloat16},
      {28, at::kUInt16},       {34, at::kUInt32},        {35, at::kUInt64}};
  const auto found = types.find(number);
  if (found == types.end()) throw Error(fmt::format("has the unknown type {}", number));
  return found->second;
}

using Json = nlohmann::json;

int64_t whole_number(const Json& value) {
  const bool is_too_large = value.is_number_unsigned() &&
                            value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
  if (!value.is_number_integer() || is_too_large) {
    throw Error(fmt::format("expected a whole number, found {}", write_json(value)));
  }
  return value.get<int64_t>();
}

std::string error_text(const Json::exception& error) {
  const std::string text = error.what();  // `[json.exception.out_of_range.403] key 'x' not found`
  const size_t end = text.find("] ");
  return text.starts_with('[') && end != std::string::npos ? text.substr(end + 2) : text;
}

namespace {

/// A whole number of a size, which is the same for all inputs.
int64_t fixed_size(const Json& size) {
  if (!size.contains("as_int")) throw Error("has a size that depends on an input");
  return whole_number(size.at("as_int"));
}

std::vector<int64_t> fixed_sizes(const Json& sizes) {
  std::vector<int64_t> result;
  for (const auto& size : sizes) result.push_back(fixed_size(size));
  return result;
}

class Archive {
 public:
  explicit Archive(const std::string& path) : file_(path) {
    for (auto& entry : list_zip(file_.bytes(), path)) {
      const size_t slash = entry.name.find('/');  // all lie in one folder, of any name
      if (slash != std::string::npos) entries_[entry.name.substr(slash + 1)] = entry;
    }
  }

  bool contains(const std::string& name) const { return entries_.contains(name); }

  std::string bytes(const std::string& name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
      throw Error(fmt::format("{}: {} is missing in it", file_.path(), name));
    }
    file_.check_size();
    const ZipEntry& entry = found->second;
    if (!entry.is_stored) return unpack_zip_entry(file_.bytes(), entry, file_.path());
    check_zip_entry(file_.bytes(), entry, file_.path());
    return std::string(file_.bytes().substr(entry.begin, entry.size));
  }

  /// A document, which is nested only so deeply that what reads it may call itself.
  Json json(const std::string& name) const {
    const std::string where = file_.path() + ": " + name;
    const auto found = entries_.find(name);
    if (found != entries_.end()) check_document(found->second, where);
    return parse_json(bytes(name), where, [&](int depth, Json::parse_event_t, const Json&) {
      if (depth > kDeepestDocument) throw Error(where + " is nested too deeply");
      return true;
    });
  }

  /// The bytes of a file that another entry describes. Throws Error when they are others.
  std::string bytes_with(const Json& described) const {
    const auto name = described.at("path").get<std::string>();
    std::string bytes = this->bytes(name);
    const ZipEntry& entry = entries_.at(name);
    if (whole_number(described.at("size")) != static_cast<int64_t>(bytes.size()) ||
        whole_number(described.at("crc32")) != int64_t{entry.crc}) {
      throw Error(fmt::format("{}: {} is another file than was compiled for it: it is damaged",
                              file_.path(), name));
    }
    return bytes;
  }

  const std::string& path() const { return file_.path(); }

 private:
  static constexpr int kDeepestDocument = 2000;

  /// Packed text shrinks to a tenth or a twentieth.
  static void check_document(const ZipEntry& entry, const std::string& where) {
    constexpr size_t kMostUnpacked = 100;
    constexpr size_t kSmall = 10'000'000;
    if (entry.size <= kSmall || entry.size / kMostUnpacked <= entry.packed_size) return;
    throw Error(fmt::format("{}: {} unpack to {}: it is damaged, or made to fill the memory", where,
                            size_text(static_cast<double>(entry.packed_size)),
                            size_text(static_cast<double>(entry.size))));
  }

  MappedFile file_;
  std::map<std::string, ZipEntry> entries_;
};

/// Reads tensors; those of one file of the archive share its memory.
class TensorReader {
 public:
  explicit TensorReader(const Archive& archive) : archive_(archive) {}

  std::map<std::string, at::Tensor> read(const std::string& folder, const std::string& list) {
    std::map<std::string, at::Tensor> tensors;
    if (!archive_.contains(folder + list)) return tensors;
    const Json json = archive_.json(folder + list);
    for (const auto& [name, entry] : json.at("config").items()) {
      try {
        if (entry.value("use_pickle", false)) {
          throw Error("is of a kind that torch.export writes as a pickle");
        }
        if (entry.at("tensor_meta").is_null()) throw Error("is no tensor");
        at::Tensor& made = tensors[name] =
            tensor(folder + entry.at("path_name").get<std::string>(), entry.at("tensor_meta"));
        made.set_requires_grad(entry.at("tensor_meta").value("requires_grad", false) &&
                               made.is_floating_point());
      } catch (const Error& error) {
        throw Error(fmt::format("{}: the tensor {} {}", archive_.path(), name, error.what()));
      }
    }
    return tensors;
  }

 private:
  at::Tensor tensor(const std::string& name, const Json& meta) {
    constexpr int kStrided = 7;
    if (whole_number(meta.at("layout")) != kStrided) throw Error("is not dense");
    const at::ScalarType type = exported_type(whole_number(meta.at("dtype")));
    const auto sizes = fixed_sizes(meta.at("sizes"));
    const auto strides = fixed_sizes(meta.at("strides"));
    const int64_t offset = fixed_size(meta.at("storage_offset"));
    at::Tensor& storage = storages_[name];
    const auto item = static_cast<int64_t>(c10::elementSize(type));
    if (!storage.defined()) {
      const std::string bytes = archive_.bytes(name);
      storage = at::empty({static_cast<int64_t>(bytes.size()) / item}, type);
      if (storage.numel() > 0) {  // or it has no memory, which memcpy must not be given
        std::memcpy(storage.mutable_data_ptr(), bytes.data(), storage.nbytes());
      }
    }
    if (storage.scalar_type() != type) throw Error("shares its memory with one of another type");
    check_within(storage.numel(), sizes, strides, offset);
    // The same parameter under two names is one tensor.
    for (const auto& known : views_[name]) {
      if (known.sizes() == sizes && known.strides() == strides &&
          known.storage_offset() == offset) {
        return known;
      }
    }
    return views_[name].emplace_back(storage.as_strided(sizes, strides, offset));
  }

  static void check_within(int64_t count, const std::vector<int64_t>& sizes,
                           const std::vector<int64_t>& strides, int64_t offset) {
    bool is_valid = sizes.size() == strides.size() && offset >= 0 && offset <= count;
    int64_t last = offset;
    for (size_t i = 0; is_valid && i < sizes.size(); ++i) {
      is_valid = sizes[i] >= 0 && strides[i] >= 0 && sizes[i] <= count && strides[i] <= count;
      if (is_valid && sizes[i] > 0) {
        int64_t reach = 0;
        is_valid = !__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) &&
                   !__builtin_add_overflow(last, reach, &last);
      }
      if (is_valid && sizes[i] == 0) return;
    }
    if (!is_valid || last >= count) throw Error("lies outside of its bytes");
  }

  const Archive& archive_;
  std::map<std::string, at::Tensor> storages_;
  std::map<std::string, std::vector<at::Tensor>> views_;
};

ExportedProgram read_program(const Archive& archive, TensorReader& tensors,
                             const std::string& name) {
  return {.model = archive.json("models/" + name + ".json"),
          .weights = tensors.read("data/weights/", name + "_weights_config.json"),
          .constants = tensors.read("data/constants/", name + "_constants_config.json")};
}

constexpr const char* kPasses = "data/compiled/passes.json";

CompiledContent read_compiled_content(const Archive& archive) {
  CompiledContent content{.passes = archive.json(kPasses), .files = {}};
  for (const auto& [mode, passes] : content.passes.at("passes").items()) {
    for (const char* direction : {"forward", "backward"}) {
      if (!passes.contains(direction)) continue;
      for (const auto& file : passes.at(direction)) {
        content.files[file.at("path").get<std::string>()] = archive.bytes_with(file);
      }
    }
  }
  return content;
}

}  // namespace

ExportedFile read_exported(const std::string& path, bool compiled) {
  const Archive archive(path);
  if (!archive.contains("models/model.json")) {
    throw Error(path +
                ": this is no program of torch.export, as PyTorch 2.8 and newer write them: "
                "python -m stepop.eval.export my_net.py:Net --example image=4,3,32,32 -o net.pt2");
  }
  if (archive.bytes("byteorder") != "little") {
    throw Error(path + ": was written on a machine with another order of bytes");
  }
  TensorReader tensors(archive);
  try {
    ExportedFile file{.program = read_program(archive, tensors, "model"),
                      .evaluation = std::nullopt,
                      .compiled = std::nullopt,
                      .has_compiled = archive.contains(kPasses)};
    if (archive.contains("models/eval.json")) {
      file.evaluation = read_program(archive, tensors, "eval");
    }
    if (compiled && file.has_compiled) file.compiled = read_compiled_content(archive);
    return file;
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: is damaged, or of another version of torch.export: {}", path,
                            error_text(error)));
  }
}

}  // namespace stepop
