// An injector for pictures in logs.
#include <ATen/ops/constant_pad_nd.h>
#include <fmt/format.h>

#include "iterators/extensible/step/injector.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {
namespace {

/// Adds a border around images [B, C, H, W], which separates them in a grid.
class Frame : public UnaryInjector {
 public:
  Frame(const Config& params, Ports& ports)
      : UnaryInjector(params, ports),
        width_(params.get_at_least("width", 1, 1)),
        value_(params.get("value", 0.0)) {}

  at::Tensor compute(const at::Tensor& x) override {
    if (x.dim() != 4) {
      throw Error(fmt::format("expected images [B, C, H, W], found {}", describe_tensor(x)));
    }
    return at::constant_pad_nd(x, {width_, width_, width_, width_}, value_);
  }

 private:
  int64_t width_;
  double value_;
};

STEPOP_REGISTER_INJECTOR(frame, Frame,
                         {"A border around images, so that they are apart in a grid.",
                          {{"in", "", ""},
                           {"out", "", ""},
                           {"width", "1", "in pixels"},
                           {"value", "0", "what it is filled with; 0 is grey in [-1, 1]"}}});

}  // namespace
}  // namespace stepop::extensible
