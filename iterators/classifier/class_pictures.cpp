#include "iterators/classifier/class_pictures.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>

#include <cstdint>
#include <vector>

#include "runtime/core/pictures/image_file.h"

namespace stepop {
namespace {

constexpr int64_t kColours = 256;
constexpr int64_t kVoid = 255;

/// VOClabelcolormap of the Pascal VOC development kit, [256, 3] in [-1, 1]: the bits of a class,
/// from the lowest on, are in turn bits of red, green and blue, from the highest on.
at::Tensor voc_colours() {
  at::Tensor colours = at::empty({kColours, 3}, at::kFloat);
  auto* value = colours.mutable_data_ptr<float>();
  for (uint32_t number = 0; number < kColours; ++number) {
    for (uint32_t channel = 0; channel < 3; ++channel) {
      uint32_t byte = 0;
      for (uint32_t bit = 0; 3 * bit + channel < 8; ++bit) {
        byte |= (number >> (3 * bit + channel) & 1U) << (7 - bit);
      }
      *value++ = from_byte(static_cast<uint8_t>(byte));
    }
  }
  return colours;
}

}  // namespace

at::Tensor class_pictures(const at::Tensor& classes) {
  static const at::Tensor colours = voc_colours();
  const at::Tensor places = at::where(classes.lt(0), kVoid, classes.remainder(kColours));
  std::vector<int64_t> shape = classes.sizes().vec();
  shape.push_back(3);
  return colours.to(classes.device())
      .index_select(0, places.flatten())
      .view(shape)
      .movedim(-1, 1)
      .contiguous();
}

}  // namespace stepop
