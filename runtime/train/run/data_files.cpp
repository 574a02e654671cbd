#include "runtime/train/run/data_files.h"

#include <fmt/format.h>

#include <string>

namespace stepop {

DataChecksums read_data_checksums(const Config& config) {
  constexpr const char* kKey = "data_checksums";
  const std::string text = config.get(kKey, "size");
  for (const auto how : {DataChecksums::kNone, DataChecksums::kSize, DataChecksums::kContent}) {
    if (text == data_checksums_text(how)) return how;
  }
  throw config.error(kKey, fmt::format("expected size, content or none, found \"{}\"", text));
}

const char* data_checksums_text(DataChecksums how) {
  return how == DataChecksums::kNone ? "none" : how == DataChecksums::kSize ? "size" : "content";
}

}  // namespace stepop
