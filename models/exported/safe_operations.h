#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace stepop {

/// Why a graph in a file must not call an operation, as the end of `it ...`; empty for one that it
/// may call. A file may come from anywhere, and some operations of LibTorch trust their arguments:
/// they read or write where these say, or open files. What torch.export makes of a network needs
/// none of them. Operations of other libraries, which the user loaded, may be called.
std::string why_refused(const c10::OperatorHandle& operation);

/// Throws Error for sizes with which an operation would leave the memory of its arguments.
using ArgumentCheck = void (*)(const torch::jit::Stack& arguments);

/// The check of arguments that LibTorch itself does not make; null for most operations.
ArgumentCheck find_argument_check(const c10::OperatorHandle& operation);

}  // namespace stepop
