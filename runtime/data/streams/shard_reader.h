#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/formats/tar_reader.h"
#include "runtime/data/stream.h"

namespace stepop {

/// Damage in a shard, with the names of the shard and the member.
class DamagedShard : public Error {
 public:
  DamagedShard(const std::string& what, bool is_cut) : Error(what), is_cut_(is_cut) {}
  /// Whether nothing after the damage can be read.
  bool is_cut() const { return is_cut_; }

 private:
  bool is_cut_;
};

/// The part of a record that holds its key.
inline constexpr std::string_view kKeyPart = "__key__";

/// A member's name in webdataset's layout: `00/17.seg.png` belongs to the record `00/17` and has
/// the extension `seg.png`, in lower case. Nothing for other names, and for hidden files.
struct ShardName {
  std::string key;
  std::string extension;
};
std::optional<ShardName> shard_name(std::string_view member);

/// The records of one shard: members side by side that have the same key.
class ShardReader {
 public:
  /// Whether members with this extension are read.
  using Wants = std::function<bool(const std::string& extension)>;

  /// The names of records, and errors, begin with `name`. `input` is at the beginning of the
  /// archive, or `offset` bytes after it, where a record begins.
  ShardReader(std::unique_ptr<ByteInput> input, std::string name, Wants wants, uint64_t offset = 0);

  /// The next record, with its parts by extension; nothing at the end. Throws DamagedShard; unless
  /// the shard is cut, the next call then returns the record after the damage. Exceptions from the
  /// input are passed on.
  std::optional<Record> next();

  /// The offset of the record that `next` will return. Valid after `next` returned a record.
  uint64_t offset() const { return offset_; }
  /// Whether `next` would return nothing.
  bool is_at_end() const { return is_at_end_; }

 private:
  std::optional<TarMember> read_header();
  void add(Record& record, const TarMember& member, const ShardName& name);
  DamagedShard damaged(const std::string& what, bool is_cut) const;

  std::unique_ptr<ByteInput> input_;
  std::string name_;
  Wants wants_;
  TarReader tar_;
  std::optional<TarMember> member_;  ///< The first member of the next record, if its header was
                                     ///< read already.
  std::string key_;                  ///< The current record's key.
  std::string dropped_;              ///< The key of a damaged record, whose other members are
                                     ///< skipped.
  uint64_t offset_ = 0;              ///< The next record's offset; 0 after damage, when the offset
                                     ///< is not known.
  bool needs_header_ = false;        ///< A damaged header was read.
  bool is_at_end_ = false;
};

}  // namespace stepop
