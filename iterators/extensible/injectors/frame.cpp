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
  struct Params : InOut {
    int64_t width = 1;
    double value = 0;

    void declare(Parameters& p) {
      InOut::declare(p);
      p.add("width", width, "in pixels", at_least(1));
      p.add("value", value, "what it is filled with; 0 is grey in [-1, 1]");
    }
  };

  Frame(const Params& params, Ports& ports)
      : UnaryInjector(params, ports), width_(params.width), value_(params.value) {}

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
                         {"A border around images, so that they are apart in a grid."});

}  // namespace
}  // namespace stepop::extensible
