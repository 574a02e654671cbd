#pragma once

#include <string>

#include "runtime/core/base/interrupt.h"

namespace stepop {

/// Opens an HDF5 file and walks through it once in a child process: the library crashes, or runs
/// without end, on some damaged files, and the child does so in our place. Throws Error when a
/// signal ended the child, when it needed more than 5 s of the processor (1 s more for each 100 MB)
/// or more memory than a file may be unpacked to, and for a file that cannot be opened or whose
/// objects cannot be listed. What else is wrong with its arrays and attributes is for the caller to
/// find.
///
/// It takes some milliseconds; the child is a fork of this process, which starts no program. Where
/// none can be started, or none gets anywhere, three times, it throws Error, too. Needs a Hdf5Lock,
/// so that no other thread is inside of the library; `interrupt` is called several times a second,
/// and what it throws passes.
void probe_hdf5(const std::string& path, const InterruptCheck& interrupt = {});

}  // namespace stepop
