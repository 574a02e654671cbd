#pragma once

#include <torch/version.h>

/// The versions against which a library is built. The text is in the file of every library that
/// includes this header, and is read before the library is loaded: loading a library of another
/// version can crash.
#define STEPOP_BUILT_AGAINST "stepop " STEPOP_VERSION " and LibTorch " TORCH_VERSION

namespace stepop {

/// The mark at the beginning of the text below.
#define STEPOP_ABI_MARK "stepop-built-against:"

namespace {
[[gnu::used]] const char built_against[] = STEPOP_ABI_MARK STEPOP_BUILT_AGAINST;
}  // namespace

}  // namespace stepop
