#include "runtime/train/step/device_graph.h"

#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>
#define STEPOP_REGISTERED_GRAPHS
#endif

namespace stepop {

#ifdef STEPOP_REGISTERED_GRAPHS
namespace {

class RegisteredGraph : public DeviceGraph {
 public:
  explicit RegisteredGraph(c10::DeviceType type) : graph_(at::create_graph_impl(type)) {}

  void begin(const DeviceGraph* beside) override {
    const auto* other = dynamic_cast<const RegisteredGraph*>(beside);
    graph_->capture_begin(other == nullptr ? c10::MempoolId_t{0, 0} : other->graph_->pool(),
                          at::GraphCaptureMode::ThreadLocal);  // loaders copy meanwhile
  }
  void end() override { graph_->capture_end(); }
  void launch() override { graph_->replay(); }

 private:
  std::unique_ptr<at::GraphImplInterface> graph_;
};

}  // namespace
#endif

std::unique_ptr<DeviceGraph> make_device_graph(c10::DeviceType type) {
#ifdef STEPOP_REGISTERED_GRAPHS
  if (at::has_graph_impl(type)) return std::make_unique<RegisteredGraph>(type);
#endif
  return type == c10::kCUDA ? make_cuda_graph() : nullptr;
}

}  // namespace stepop
