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

/// Damage in a shard, with the shard's name and the member's.
class DamagedShard : public Error {
 public:
  DamagedShard(const std::string& what, bool is_cut) : Error(what), is_cut_(is_cut) {}
  /// Whether nothing can be read behind it.
  bool is_cut() const { return is_cut_; }

 private:
  bool is_cut_;
};

/// The part of a record that holds its key.
inline constexpr std::string_view kKeyPart = "__key__";

/// A member's name in webdataset's layout: `00/17.seg.png` is of the record `00/17` and has the
/// extension `seg.png`, in lower case. Nothing for other names, and for hidden files.
struct ShardName {
  std::string key;
  std::string extension;
};
std::optional<ShardName> shard_name(std::string_view member);

/// The records of one shard: members side by side that have the same key.
class ShardReader {
 public:
  /// Whether members with that extension are read.
  using Wants = std::function<bool(const std::string& extension)>;

  /// `name` is what records and errors begin with. `input` is at the beginning of the archive, or
  /// `offset` bytes behind it, where a record begins.
  ShardReader(std::unique_ptr<ByteInput> input, std::string name, Wants wants, uint64_t offset = 0);

  /// The next record, whose parts are by extension; nothing at the end. Throws DamagedShard, after
  /// which, unless it is cut, the next call gives what comes behind; and what the input throws.
  std::optional<Record> next();

  /// Where the record that `next` will give begins, behind one that it gave.
  uint64_t offset() const { return offset_; }
  /// Whether `next` would give nothing.
  bool is_at_end() const { return is_at_end_; }

 private:
  std::optional<TarMember> read_header();
  void add(Record& record, const TarMember& member, const ShardName& name);
  DamagedShard damaged(const std::string& what, bool is_cut) const;

  std::unique_ptr<ByteInput> input_;
  std::string name_;
  Wants wants_;
  TarReader tar_;
  std::optional<TarMember> member_;  ///< Whose header was read: that of the next record.
  std::string key_;                  ///< Of the record at hand.
  std::string dropped_;              ///< The key of a damaged record, whose other members are left.
  uint64_t offset_ = 0;              ///< Of the next record; 0 behind damage: it is not known.
  bool needs_header_ = false;        ///< Behind a damaged header.
  bool is_at_end_ = false;
};

}  // namespace stepop
