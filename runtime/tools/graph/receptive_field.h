#pragma once

#include <optional>
#include <string>

#include "runtime/tools/graph/network_graph.h"

namespace stepop {

/// The part of an image on which each place of a network's first output depends.
struct ReceptiveField {
  int64_t height = 1;  ///< In pixels of the first input image.
  int64_t width = 1;
  int64_t image_height = 0;
  int64_t image_width = 0;
  int64_t rows = 0;  ///< The rows of the output.
  int64_t columns = 0;
  bool has_statistics = false;  ///< Whether a normalization adds statistics of the whole image.
};

/// Computed from kernels, strides and dilations on the longest path from an image [B, C, H, W] to
/// the first output [B, C, h, w]. Normalizations are not counted. Nothing for other shapes, and for
/// a network with an operation that may use the whole image, such as a linear layer or attention.
std::optional<ReceptiveField> receptive_field(const NetworkGraph& graph);

/// `3 x 3 outputs for 32 x 32 pixels, each sees 34 x 34`
std::string receptive_field_text(const ReceptiveField& field);

}  // namespace stepop
