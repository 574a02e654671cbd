#pragma once

namespace stepop {

/// How the tensors of an evaluation are stored: as they are, or in HDF5 chunks with the library's
/// own shuffle and deflate filters, which every HDF5 reader knows.
enum class EvalCompression { kNone, kGzip };

}  // namespace stepop
