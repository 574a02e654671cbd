#pragma once

// Files of named tensors, as Python's safetensors reads and writes them.

#include "runtime/core/formats/safetensors.h"
