#pragma once

#include <cstdint>
#include <ctime>
#include <string>

#include "runtime/core/base/interrupt.h"

namespace stepop {

/// How closely data files are looked at.
enum class DataChecksums {
  kNone,     ///< Not at all.
  kSize,     ///< At names, sizes and times.
  kContent,  ///< At every byte as well.
};

/// A time in UTC: `2026-11-21T10:00:00.123456789`.
std::string utc_time(const timespec& time);

/// What is known of a data file, or of all files of a folder together.
struct DataFile {
  std::string path = {};
  bool is_folder = false;
  int64_t files = 0;
  int64_t bytes = 0;
  std::string modified =
      {};  ///< When the newest was written, in UTC: `2026-11-21T10:00:00.123456789`.
  std::string listing = {};  ///< Of a folder: the checksum of the names and sizes of its files.
  std::string content = {};  ///< The checksum of the bytes, when they were read.
  std::string failure = {};  ///< Why some of this is missing: `no such file`.

  bool operator==(const DataFile&) const = default;
};

/// A folder with more files than can be listed in this time is not known.
inline constexpr double kListingSeconds = 20;

/// Looks at a file or a folder with all that is below it; does not throw for what it cannot read,
/// but says so in `failure`. What `interrupt` throws passes.
DataFile look_at_data(const std::string& path, DataChecksums how,
                      const InterruptCheck& interrupt = {},
                      double listing_seconds = kListingSeconds);

/// In what `now` differs from `before`: `has 120 bytes, it had 100`, `is gone`; empty when it does
/// not, as far as both are known.
std::string change_of_data(const DataFile& before, const DataFile& now);

}  // namespace stepop
