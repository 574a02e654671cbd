#pragma once

namespace stepop {

/// The resident memory of this process in bytes; 0 where the system does not report it.
double resident_bytes();

}  // namespace stepop
