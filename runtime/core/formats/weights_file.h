#pragma once

#include <string>

#include "runtime/core/formats/safetensors.h"

namespace stepop {

/// Reads the tensors of a file of weights, by its content: safetensors, what `torch.save` wrote
/// (see load_torch_file), or an index of Hugging Face's (`*.index.json`), whose files lie beside
/// it. Only safetensors have metadata. Throws Error with the path and the cause.
SafetensorsFile load_weights(const std::string& path);

/// Whether it is one of these files other than safetensors, packed by gzip or not. Packed ones are
/// refused by load_weights, with how they are unpacked.
bool is_weights_of_python(const std::string& path);

}  // namespace stepop
