#pragma once

#include "runtime/tools/cli/arguments.h"

namespace stepop {

/// Does what a config says of the processes of a training, before there is anything else of it:
/// with `thread_wait` this program starts itself again where it waits in another way, and does not
/// return; `--tuned auto` becomes the settings that it stands for; `processes` becomes
/// `--processes` where neither that nor a launcher says how many there are, and so does what
/// `--processes` was for a run that is resumed. What is returned
/// records how many there really are. Throws UsageError for values that cannot be; a config that
/// cannot be read is left to whoever needs it.
Arguments with_process_settings(const Arguments& arguments);

}  // namespace stepop
