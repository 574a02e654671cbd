#pragma once

#include "runtime/tools/cli/arguments.h"

namespace stepop {

/// Takes words such as `model=resnet` out of the words behind -b, and out of the operands unless
/// the command has operands of its own, such as a run: each becomes an override of `model` by the
/// config file `model/resnet.yaml` beside a config of -b, the last one first. Words that name a
/// file or folder stay, as do those of another form. Throws UsageError for a name that is not
/// there, with those that are, and without -b.
void choose_from_groups(Arguments& arguments);

}  // namespace stepop
