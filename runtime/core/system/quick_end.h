#pragma once

namespace stepop {

/// From the call on, this process ends after the destructors of what was made since: those of what
/// was made before, of LibTorch above all, do not run. LibTorch takes back each of its operations,
/// which is a quarter of the time of a command. Streams are written out. For the begin of `main`.
///
/// Does nothing under a sanitizer, or if LD_PRELOAD has a library, as those of profilers, which may
/// write at the end what it found.
void end_quickly();

}  // namespace stepop
