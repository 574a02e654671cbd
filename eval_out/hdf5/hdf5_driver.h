#pragma once

#include "eval_out/hdf5/hdf5.h"

namespace stepop {

/// How files are read and written: as by the library's usual driver, but a file that is written
/// becomes shorter only when it is closed, after all else of it is written. The library's own order
/// is to cut a file first and to write its new length into it then: a process that is killed in
/// between leaves a file that claims to be longer than it is, which nobody can read.
///
/// Needs a Hdf5Lock. Throws Error when the library has no such driver.
hid_t hdf5_driver();

/// The properties with which a file is opened. With a lock, other processes cannot write the file
/// while it is read, and cannot open it while it is written. On a file system without locks, no
/// lock is taken.
Hdf5Id hdf5_file_access(bool is_locked);

}  // namespace stepop
