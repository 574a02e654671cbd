#pragma once

namespace stepop {

/// The memory of this process that lies in the machine's own, in bytes; 0 where nobody tells.
double resident_bytes();

}  // namespace stepop
