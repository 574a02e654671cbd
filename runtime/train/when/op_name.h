#pragma once

#include <string>
#include <string_view>

#include "runtime/core/config/config.h"

namespace stepop {

/// An op of a split, `validation/log_op`, as configs name it.
struct OpName {
  std::string split;
  std::string op;

  std::string text() const { return split + "/" + op; }
};

/// Parses `text`, the config's value at `path`. Throws UsageError when it names no op, or an op of
/// a split without a dataset. `example` is an op name for the message.
OpName parse_op(const Config& config, std::string_view path, const std::string& text,
                const std::string& example);

}  // namespace stepop
