#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <utility>

#include "runtime/data/dataset.h"
#include "runtime/data/datasets/facade.h"

namespace stepop {
namespace {

constexpr int64_t kLeastSize = 16;
constexpr int64_t kMostSize = 4096;
constexpr int64_t kMostExamples = int64_t{1} << 40;

/// Synthetic fronts of buildings, for image translation without a download: a map of the parts,
/// coloured as in the CMP Facade Database, and a rendering of it. The rendering follows from the
/// map, so a network can learn it.
///
/// Parameters: `size` = 64, pixels a side; `examples` = 1000; `seed` = 0; `offset` = 0, the number
/// of the first building. For a validation split, choose an offset past the training examples;
/// `mask` = false.
///
/// An example holds `input`, the map, and `target`, each float [3, size, size] in [-1, 1], and with
/// `mask: true` the map's 12 classes, int64 [size, size].
class Facades : public Dataset {
 public:
  explicit Facades(const Config& params)
      : image_size_(params.get_between("size", kLeastSize, kMostSize, 64)),
        examples_(params.get_between("examples", 1, kMostExamples, 1000)),
        seed_(static_cast<uint64_t>(params.get_at_least("seed", 0, 0))),
        offset_(params.get_between("offset", 0, kMostExamples, 0)),
        has_mask_(params.get("mask", false)) {}

  int64_t size() const override { return examples_; }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, examples_);
    Random random(mix_seed({seed_, seed_of("facade"), static_cast<uint64_t>(offset_ + index)}));
    const Facade facade = random_facade(random);
    at::Tensor input = at::empty({3, image_size_, image_size_}, at::kFloat);
    at::Tensor target = at::empty({3, image_size_, image_size_}, at::kFloat);
    draw_label_map(facade, image_size_, input.mutable_data_ptr<float>());
    draw_rendering(facade, image_size_, target.mutable_data_ptr<float>());
    target.clamp_(-1, 1);
    Example example{.tensors = {{"input", input}, {"target", target}}, .texts = {}};
    if (has_mask_) {
      at::Tensor mask = at::empty({image_size_, image_size_}, at::kLong);
      draw_classes(facade, image_size_, mask.mutable_data_ptr<int64_t>());
      example.tensors.set("mask", std::move(mask));
    }
    return example;
  }

 private:
  int64_t image_size_;
  int64_t examples_;
  uint64_t seed_;
  int64_t offset_;
  bool has_mask_;
};

STEPOP_REGISTER_DATASET(
    Facades,
    {"Made-up fronts of buildings: a coloured map of their parts, and its rendering.",
     {{"size", "64", "pixels a side"},
      {"examples", "1000", "how many"},
      {"seed", "0", "of the buildings"},
      {"offset", "0", "number of the first building; beyond those of train: held out"},
      {"mask", "false", "true: also mask, the 12 classes of the map, int64 [size, size]"}}});

}  // namespace
}  // namespace stepop
