#include "runtime/data/streams/shard_reader.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/core/base/number_text.h"

namespace stepop {
namespace {

/// The size limit for one member.
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

}  // namespace

std::optional<ShardName> shard_name(std::string_view member) {
  while (member.starts_with("./")) member.remove_prefix(2);
  const size_t slash = member.rfind('/');
  const size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t dot = member.find('.', begin);
  // A name in double underscores belongs to the shard as a whole.
  if (dot == std::string_view::npos || dot == begin || dot + 1 == member.size()) return {};
  if (member.starts_with("__") && member.ends_with("__")) return {};
  ShardName name{std::string(member.substr(0, dot)), std::string(member.substr(dot + 1))};
  for (char& c : name.extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

ShardReader::ShardReader(std::unique_ptr<ByteInput> input, std::string name, Wants wants,
                         uint64_t offset)
    : input_(std::move(input)),
      name_(std::move(name)),
      wants_(std::move(wants)),
      tar_(*input_, offset),
      offset_(offset) {}

DamagedShard ShardReader::damaged(const std::string& what, bool is_cut) const {
  return {
      fmt::format("{}: {}{}", name_, key_.empty() ? "" : fmt::format("record {}: ", key_), what),
      is_cut};
}

/// The next file in the archive; nothing at the end of the archive.
std::optional<TarMember> ShardReader::read_header() {
  if (needs_header_ && !tar_.find_header()) return std::nullopt;
  needs_header_ = false;
  return tar_.next();
}

void ShardReader::add(Record& record, const TarMember& member, const ShardName& name) {
  const auto refuse = [&](const std::string& what) {
    dropped_ = name.key;
    return DamagedShard(fmt::format("{}: {}: {}", name_, member.name, what), false);
  };
  if (record.parts.contains(name.extension))
    throw refuse("the record has two members of that name");
  if (member.is_link)
    throw refuse("it is a link; pack the files themselves, by tar's --dereference");
  if (member.size > kMostBytes) {
    throw refuse(fmt::format("it has {}, and more than {} are not read",
                             size_text(static_cast<double>(member.size)),
                             size_text(static_cast<double>(kMostBytes))));
  }
  record.parts.set(name.extension, tar_.content(kMostBytes));
}

std::optional<Record> ShardReader::next() {
  Record record;
  bool has_record = false;
  key_.clear();
  offset_ = 0;
  try {
    while (!is_at_end_) {
      if (!member_) member_ = read_header();
      if (!member_) {
        is_at_end_ = true;
        break;
      }
      const auto name = shard_name(member_->name);
      if (name && has_record && name->key != key_) break;
      const TarMember member = *std::exchange(member_, std::nullopt);
      if (!name || name->key == dropped_) continue;
      dropped_.clear();
      has_record = true;
      key_ = name->key;
      if (wants_(name->extension)) add(record, member, *name);
    }
  } catch (const TarDamage& damage) {
    dropped_ = key_;
    needs_header_ = !damage.is_cut();
    is_at_end_ = damage.is_cut();
    throw damaged(damage.what(), damage.is_cut());
  } catch (const DamagedInput& damage) {
    is_at_end_ = true;
    throw damaged(damage.what(), true);
  }
  if (member_) offset_ = member_->begin;
  if (!has_record) return std::nullopt;
  record.parts.set(std::string(kKeyPart), key_);
  record.name = fmt::format("{}: {}", name_, key_);
  return record;
}

}  // namespace stepop
