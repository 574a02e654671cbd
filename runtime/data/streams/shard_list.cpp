#include "runtime/data/streams/shard_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostShards = 1'000'000;

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_one = failed == std::errc() && end == text.data() + text.size() && number >= 0;
  return is_one ? std::optional(number) : std::nullopt;
}

/// The alternatives of the text between two braces.
std::vector<std::string> alternatives(std::string_view inside, const std::string& pattern) {
  const auto refuse = [&] {
    return Error(fmt::format(
        "{}: \"{{{}}}\" means nothing; braces hold a range of numbers, {{000..099}}, or names, "
        "{{train,extra}}",
        pattern, inside));
  };
  std::vector<std::string> texts;
  if (const size_t dots = inside.find(".."); dots != std::string_view::npos) {
    const std::string_view first = inside.substr(0, dots);
    const std::string_view last = inside.substr(dots + 2);
    const auto from = whole_number(first);
    const auto to = whole_number(last);
    if (!from || !to || *to < *from) throw refuse();
    if (static_cast<uint64_t>(*to - *from) >= kMostShards) {
      throw Error(fmt::format("{}: more than {} shards", pattern, kMostShards));
    }
    const bool is_padded = first.size() > 1 && first[0] == '0';
    for (int64_t i = *from; i <= *to; ++i) {
      texts.push_back(fmt::format("{:0{}}", i, is_padded ? first.size() : 0));
    }
    return texts;
  }
  if (inside.find(',') == std::string_view::npos) throw refuse();
  for (size_t begin = 0; begin <= inside.size();) {
    const size_t end = std::min(inside.find(',', begin), inside.size());
    texts.emplace_back(inside.substr(begin, end - begin));
    begin = end + 1;
  }
  return texts;
}

bool is_shard(const std::string& name) {
  return !name.starts_with(".") &&
         (name.ends_with(".tar") || name.ends_with(".tar.gz") || name.ends_with(".tgz"));
}

}  // namespace

std::vector<std::string> expand_braces(const std::string& pattern) {
  std::vector<std::string> names = {""};
  for (size_t begin = 0; begin < pattern.size();) {
    const size_t open = std::min(pattern.find('{', begin), pattern.size());
    const size_t close = open < pattern.size() ? pattern.find('}', open) : pattern.size();
    if (close == std::string::npos) {
      throw Error(fmt::format("{}: a brace is not closed", pattern));
    }
    std::vector<std::string> parts = {""};
    if (open < pattern.size()) {
      parts = alternatives(std::string_view(pattern).substr(open + 1, close - open - 1), pattern);
    }
    if (names.size() * parts.size() > kMostShards) {
      throw Error(fmt::format("{}: more than {} shards", pattern, kMostShards));
    }
    std::vector<std::string> longer;
    longer.reserve(names.size() * parts.size());
    for (const auto& name : names) {
      for (const auto& part : parts) {
        longer.push_back(name + pattern.substr(begin, open - begin) + part);
      }
    }
    names = std::move(longer);
    begin = close + 1;
  }
  return names;
}

std::vector<std::string> list_shards(const std::string& path, LeftOut& left_out) {
  std::error_code failed;
  std::vector<std::string> shards;
  if (fs::is_directory(path, failed)) {
    fs::directory_iterator entries(path, failed);
    for (; !failed && entries != fs::directory_iterator(); entries.increment(failed)) {
      const std::string name = entries->path().filename().string();
      if (is_shard(name)) {
        shards.push_back(entries->path().string());
      } else if (!name.starts_with(".") && !entries->is_directory(failed)) {
        left_out.add(name);
      }
    }
    if (failed) throw Error(fmt::format("{}: cannot be listed: {}", path, failed.message()));
    if (shards.empty()) throw Error(fmt::format("{}: no .tar, .tar.gz or .tgz is there", path));
    std::sort(shards.begin(), shards.end());
    return shards;
  }
  shards = fs::exists(path, failed) ? std::vector<std::string>{path} : expand_braces(path);
  for (const auto& shard : shards) {
    if (!fs::exists(shard, failed)) throw Error("no such file: " + shard);
    if (fs::is_directory(shard, failed)) {
      throw Error("expected a file, found a folder: " + shard);
    }
  }
  return shards;
}

std::string place_of_shards(const std::string& path) {
  std::error_code failed;
  if (fs::exists(path, failed)) return path;
  return fs::path(path.substr(0, path.find('{')) + "x").parent_path().string();
}

}  // namespace stepop
