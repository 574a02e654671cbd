#pragma once

#include "runtime/core/config/config.h"
#include "runtime/core/system/look_at_data.h"

namespace stepop {

/// Reads `data_checksums`, which says how a start records the data that it opens: `size`, the
/// default, `content` or `none`. Throws UsageError for anything else.
DataChecksums read_data_checksums(const Config& config);
const char* data_checksums_text(DataChecksums how);

}  // namespace stepop
