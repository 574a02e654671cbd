#pragma once

#include <string>

#include "runtime/core/base/interrupt.h"

namespace stepop {

/// Walks through an HDF5 file once in another process: the library crashes, or runs without end, on
/// some damaged files, and that process does so in our place. Throws Error when a signal ended it,
/// when it needed more than 5 s of the processor (1 s more for each 100 MB) or more memory than a
/// file may be unpacked to, and for a file that cannot be opened or whose objects cannot be listed.
/// What else is wrong with its arrays and attributes is for the caller to find.
///
/// The process is the program stepop_probe_hdf5 (probe_main.cpp), which lies beside libstepop.so:
/// some milliseconds. Where it cannot be started the file is refused, with an Error. `interrupt` is
/// called several times a second, and what it throws passes.
void probe_hdf5(const std::string& path, const InterruptCheck& interrupt = {});

// What that program prints; the second is followed by the message of an Error.
inline constexpr const char* kProbePassed = "passed";
inline constexpr const char* kProbeRefused = "refused: ";
inline constexpr const char* kProbeNoMemory = "no memory";

}  // namespace stepop
