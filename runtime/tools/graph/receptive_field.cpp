#include "runtime/tools/graph/receptive_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

namespace stepop {
namespace {

/// The field of one place of a tensor, in each dimension: its size in pixels, and the distance in
/// pixels to the next place's field.
struct Seen {
  std::array<double, 2> pixels = {0, 0};  ///< 0: no pixels of an image.
  std::array<double, 2> jump = {1, 1};
};

constexpr std::array<std::string_view, 34> kByPlace = {"relu",
                                                       "relu6",
                                                       "leaky_relu",
                                                       "prelu",
                                                       "elu",
                                                       "gelu",
                                                       "silu",
                                                       "sigmoid",
                                                       "tanh",
                                                       "hardtanh",
                                                       "softplus",
                                                       "hardswish",
                                                       "add",
                                                       "sub",
                                                       "mul",
                                                       "div",
                                                       "neg",
                                                       "exp",
                                                       "clamp",
                                                       "dropout",
                                                       "contiguous",
                                                       "clone",
                                                       "detach",
                                                       "to",
                                                       "cat",
                                                       "batch_norm",
                                                       "instance_norm",
                                                       "group_norm",
                                                       "feature_dropout",
                                                       "reflection_pad2d",
                                                       "replication_pad2d",
                                                       "constant_pad_nd",
                                                       "pad",
                                                       "type_as"};

bool is_by_place(std::string_view op) { return std::ranges::find(kByPlace, op) != kByPlace.end(); }

bool is_image(const GraphStep& step) {
  return !step.shapes.empty() && step.shapes.front().size() == 4;
}

/// The joint field of an operation's inputs.
Seen joined(const NetworkGraph& graph, const GraphStep& step, const std::vector<Seen>& seen) {
  Seen all;
  for (const size_t source : step.from) {
    if (!is_image(graph.steps[source])) continue;
    for (size_t i = 0; i < 2; ++i) {
      all.pixels[i] = std::max(all.pixels[i], seen[source].pixels[i]);
      if (seen[source].pixels[i] > 0) all.jump[i] = seen[source].jump[i];
    }
  }
  return all;
}

/// The field after the operation; nothing if the operation may use the whole image.
std::optional<Seen> after(const GraphStep& step, const std::vector<int64_t>& shape_before,
                          Seen seen) {
  const auto& shape = step.shapes.front();
  const bool is_transposed = step.op.starts_with("conv_transpose");
  if (!step.kernel.empty()) {
    if (step.kernel.size() != 2 || step.stride.size() != 2 || step.dilation.size() != 2) return {};
    for (size_t i = 0; i < 2; ++i) {
      const auto kernel = static_cast<double>((step.kernel[i] - 1) * step.dilation[i]);
      const auto stride = static_cast<double>(step.stride[i]);
      if (is_transposed) seen.jump[i] /= stride;
      // A place of a transposed convolution sees the places whose kernels reach it.
      seen.pixels[i] += is_transposed ? std::floor(kernel / stride) * stride * seen.jump[i]
                                      : kernel * seen.jump[i];
      if (!is_transposed) seen.jump[i] *= stride;
    }
    return seen;
  }
  if (step.op.starts_with("upsample_") || step.op == "pixel_shuffle") {
    for (size_t i = 0; i < 2; ++i) {
      const auto times =
          static_cast<double>(shape[i + 2]) / static_cast<double>(shape_before[i + 2]);
      if (step.op.starts_with("upsample_bilinear")) seen.pixels[i] += seen.jump[i];
      if (step.op.starts_with("upsample_bicubic")) seen.pixels[i] += 3 * seen.jump[i];
      seen.jump[i] /= times;
    }
    return seen;
  }
  if (is_by_place(step.op)) return seen;
  return {};
}

}  // namespace

std::optional<ReceptiveField> receptive_field(const NetworkGraph& graph) {
  if (graph.outputs.empty() || !is_image(graph.steps[graph.outputs.front()])) return {};
  ReceptiveField field;
  std::vector<Seen> seen;
  for (const auto& step : graph.steps) {
    if (step.op == "input") {
      Seen start;
      if (is_image(step)) {
        const auto& shape = step.shapes.front();
        if (field.image_height == 0) {
          field.image_height = shape[2];
          field.image_width = shape[3];
        }
        const auto times = [&](int64_t first, int64_t here) {
          return static_cast<double>(first) / static_cast<double>(here);
        };
        start.jump = {times(field.image_height, shape[2]), times(field.image_width, shape[3])};
        start.pixels = start.jump;
      }
      seen.push_back(start);
      continue;
    }
    const Seen before = joined(graph, step, seen);
    const auto image = std::ranges::find_if(
        step.from, [&](size_t source) { return is_image(graph.steps[source]); });
    if (before.pixels[0] == 0) {  // no input is an image
      seen.push_back(before);
      continue;
    }
    if (!is_image(step)) return {};
    const auto now = after(step, graph.steps[*image].shapes.front(), before);
    if (!now) return {};
    field.has_statistics |= step.op == "instance_norm" || step.op == "group_norm";
    seen.push_back(*now);
  }
  const size_t output = graph.outputs.front();
  if (field.image_height == 0 || seen[output].pixels[0] == 0) return {};
  field.height = std::llround(seen[output].pixels[0]);
  field.width = std::llround(seen[output].pixels[1]);
  field.rows = graph.steps[output].shapes.front()[2];
  field.columns = graph.steps[output].shapes.front()[3];
  return field;
}

std::string receptive_field_text(const ReceptiveField& field) {
  const bool is_more = field.height > field.image_height && field.width > field.image_width;
  return fmt::format("{} x {} outputs for {} x {} pixels; each sees {} x {}{}{}", field.rows,
                     field.columns, field.image_height, field.image_width, field.height,
                     field.width, is_more ? ", more than there are" : "",
                     field.has_statistics ? ", beside what normalizations measure" : "");
}

}  // namespace stepop
