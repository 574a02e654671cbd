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
/// An example holds `input`, the map, and `target`, each float [3, size, size] in [-1, 1], and with
/// `mask: true` the map's 12 classes, int64 [size, size].
class Facades : public Dataset {
 public:
  struct Params {
    int64_t size = 64;
    int64_t examples = 1000;
    int64_t seed = 0;
    int64_t offset = 0;
    bool mask = false;

    void declare(Parameters& p) {
      p.add("size", size, "pixels a side", at_least(kLeastSize).at_most(kMostSize));
      p.add("examples", examples, "how many", at_least(1).at_most(kMostExamples));
      p.add("seed", seed, "of the buildings", at_least(0));
      p.add("offset", offset, "number of the first building; beyond those of train: held out",
            at_least(0).at_most(kMostExamples));
      p.add("mask", mask, "true: also mask, the 12 classes of the map, int64 [size, size]");
    }
  };

  explicit Facades(const Params& params) : p_(params) {}

  int64_t size() const override { return p_.examples; }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, p_.examples);
    Random random(mix_seed({static_cast<uint64_t>(p_.seed), seed_of("facade"),
                            static_cast<uint64_t>(p_.offset + index)}));
    const Facade facade = random_facade(random);
    at::Tensor input = at::empty({3, p_.size, p_.size}, at::kFloat);
    at::Tensor target = at::empty({3, p_.size, p_.size}, at::kFloat);
    draw_label_map(facade, p_.size, input.mutable_data_ptr<float>());
    draw_rendering(facade, p_.size, target.mutable_data_ptr<float>());
    target.clamp_(-1, 1);
    Example example{.tensors = {{"input", input}, {"target", target}}, .texts = {}};
    if (p_.mask) {
      at::Tensor mask = at::empty({p_.size, p_.size}, at::kLong);
      draw_classes(facade, p_.size, mask.mutable_data_ptr<int64_t>());
      example.tensors.set("mask", std::move(mask));
    }
    return example;
  }

 private:
  Params p_;
};

STEPOP_REGISTER_DATASET(
    Facades, {"Made-up fronts of buildings: a coloured map of their parts, and its rendering."});

}  // namespace
}  // namespace stepop
