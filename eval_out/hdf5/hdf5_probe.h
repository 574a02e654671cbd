#pragma once

#include <string>

#include "runtime/base/interrupt.h"

namespace stepop {

/// Opens an HDF5 file and walks through it once in a child process: the library crashes, or runs
/// without end, on some damaged files, and the child does so in our place. Throws Error when a
/// signal ended the child, when it needed more than 5 s of the processor (1 s more for each 100 MB)
/// or more memory than a file may be unpacked to. Whatever else is wrong with the file is for the
/// caller to find, who does the same steps again.
///
/// It takes some milliseconds; the child is a fork of this process, which starts no program. Where
/// the system allows none the file passes. Needs a Hdf5Lock, so that no other thread is inside of
/// the library; `interrupt` is called several times a second, and what it throws passes.
void probe_hdf5(const std::string& path, const InterruptCheck& interrupt = {});

}  // namespace stepop
