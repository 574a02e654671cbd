#pragma once

#include <cstdint>
#include <ctime>
#include <string>

#include "runtime/core/base/interrupt.h"

namespace stepop {

/// How thoroughly data files are recorded.
enum class DataChecksums {
  kNone,     ///< Not at all.
  kSize,     ///< Names, sizes and times.
  kContent,  ///< Also every byte.
};

/// A time in UTC: `2026-11-21T10:00:00.123456789`.
std::string utc_time(const timespec& time);

/// The known facts about a data file, or about all files of a folder together.
struct DataFile {
  std::string path = {};
  bool is_folder = false;
  int64_t files = 0;
  int64_t bytes = 0;
  std::string modified =
      {};  ///< When the newest was written, in UTC: `2026-11-21T10:00:00.123456789`.
  std::string listing = {};  ///< For a folder: the checksum of the names and sizes of its files.
  std::string content = {};  ///< The checksum of the bytes, if they were read.
  std::string failure = {};  ///< Why some of this is missing: `no such file`.

  bool operator==(const DataFile&) const = default;
};

/// A folder with more files than can be listed in this time stays unknown.
inline constexpr double kListingSeconds = 20;

/// Reads the facts about a file, or a folder with everything below it. Does not throw for
/// unreadable files, but reports them in `failure`. Exceptions of `interrupt` are passed on.
DataFile look_at_data(const std::string& path, DataChecksums how,
                      const InterruptCheck& interrupt = {},
                      double listing_seconds = kListingSeconds);

/// The difference of `now` from `before`: `has 120 bytes, it had 100`, `is gone`; empty when there
/// is none, as far as both are known.
std::string change_of_data(const DataFile& before, const DataFile& now);

}  // namespace stepop
