#pragma once

#include <torch/version.h>

/// What a library is built against. Whoever includes this header has it in its file, where it is
/// read before the library is loaded: loading one of another version can crash.
#define STEPOP_BUILT_AGAINST "stepop " STEPOP_VERSION " and LibTorch " TORCH_VERSION

namespace stepop {

/// What the text below begins with in the file.
#define STEPOP_ABI_MARK "stepop-built-against:"

namespace {
[[gnu::used]] const char built_against[] = STEPOP_ABI_MARK STEPOP_BUILT_AGAINST;
}  // namespace

}  // namespace stepop
