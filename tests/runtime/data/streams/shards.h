#pragma once

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "runtime/core/pictures/image_file.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/streams/tar_shards.h"
#include "tests/scratch_folder.h"
#include "tests/tar_file.h"

namespace stepop::shards_for_tests {

using Strings = std::vector<std::string>;

inline std::string png(int value) { return encode_png(at::full({4, 6, 3}, value, at::kByte)); }

/// Records `first` to before `end`, each of a picture and a class.
inline std::string shard(int first, int end) {
  std::string bytes;
  for (int i = first; i < end; ++i) {
    bytes += tar_member(fmt::format("./{:04}.png", i), png(i)) +
             tar_member(fmt::format("./{:04}.cls", i), std::to_string(i) + "\n");
  }
  return bytes + tar_end();
}

/// Four shards of 10 records.
struct Shards : ScratchFolder {
  Shards() {
    for (int i = 0; i < 4; ++i) write(fmt::format("s-{:02}.tar", i), shard(10 * i, 10 * i + 10));
  }
};

inline Config config_of(const std::string& yaml) {
  return Config(parse_yaml(yaml, {"test.yaml", 0}));
}

/// What is left of the pass: classes, by their text.
inline Strings rest(Stream& stream) {
  Strings found;
  while (auto record = stream.next({})) {
    const std::string* part = record->parts.find("cls");
    found.push_back(part == nullptr ? "none" : part->substr(0, part->find('\n')));
  }
  return found;
}

inline Strings numbers(int first, int end) {
  Strings texts;
  for (int i = first; i < end; ++i) texts.push_back(std::to_string(i));
  return texts;
}

inline Strings pass_of(const std::string& yaml, const StreamPass& pass = {}) {
  TarShards stream(config_of(yaml));
  stream.begin(pass);
  return rest(stream);
}

}  // namespace stepop::shards_for_tests
