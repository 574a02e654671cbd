// What a start says of a stream of shards.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/formats/byte_input.h"
#include "runtime/core/pictures/exif.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/notice.h"
#include "runtime/data/streams/tar_shards.h"

namespace stepop {

std::string TarShards::notice() const {
  constexpr int kMostRecords = 100;
  const std::string of_classes = parts_.class_notice(params_);
  if (is_remote()) return joined_notices({left_out_, of_classes});
  const bool looks_at_pictures = !parts_.images().turns_upright();
  std::map<std::string, int64_t> unread;
  const auto wants = [&](const std::string& extension) {
    if (!parts_.can_read(extension)) ++unread[extension];
    return looks_at_pictures && parts_.is_picture(extension);
  };
  int records = 0;
  int64_t pictures = 0;
  int64_t turned = 0;
  std::string first;  // turned picture
  bool has_more = shards_.size() > 1;
  try {
    ShardReader reader(std::make_unique<UnpackedInput>(std::make_unique<FileInput>(shards_[0])),
                       shards_[0], wants);
    while (records < kMostRecords && !reader.is_at_end()) {
      const auto record = reader.next();
      if (!record) break;
      ++records;
      for (const auto& [extension, bytes] : record->parts) {
        if (extension == kKeyPart) continue;
        ++pictures;
        const int orientation = exif_orientation(bytes);
        if (orientation == kUpright) continue;
        if (turned++ > 0) continue;
        const std::string* key = record->parts.find(kKeyPart);
        first = fmt::format("{}.{}: {}", key == nullptr ? "" : *key, extension, orientation);
      }
    }
    has_more = has_more || !reader.is_at_end();
  } catch (const Error&) {  // reported when the record is read
  }
  std::vector<std::string> notices = {left_out_, of_classes};
  if (!unread.empty()) {
    std::vector<std::string> texts;
    for (const auto& [extension, count] : unread) {
      texts.push_back(fmt::format("{} .{}", count, extension));
    }
    notices.push_back(
        fmt::format("{}{}: members that cannot be read are left out: of the first {} {}", kWarning,
                    shards_[0], counted(records, "record"), list_text(texts)));
  }
  if (turned > 0) {
    const std::string looked_at = counted(pictures, "image") + (has_more ? " looked at" : "");
    notices.push_back(orientation_warning(shards_[0], turned, looked_at, first));
  }
  return joined_notices(notices);
}

}  // namespace stepop
