#pragma once

#include "runtime/core/config/config.h"
#include "runtime/core/system/look_at_data.h"

namespace stepop {

/// `data_checksums` of a config, how a start looks at the data that it opens: `size`, the default,
/// `content` or `none`. Throws UsageError for anything else.
DataChecksums read_data_checksums(const Config& config);
const char* data_checksums_text(DataChecksums how);

}  // namespace stepop
