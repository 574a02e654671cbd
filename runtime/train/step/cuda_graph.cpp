// Graphs of CUDA, where LibTorch has CUDA and the headers of its runtime are there.
#include "runtime/train/step/device_graph.h"

#ifdef STEPOP_CUDA_GRAPHS
#include <ATen/cuda/CUDAGraph.h>
#endif

namespace stepop {

#ifdef STEPOP_CUDA_GRAPHS
namespace {

class CudaGraph : public DeviceGraph {
 public:
  void begin(const DeviceGraph* beside) override {
    const auto* other = dynamic_cast<const CudaGraph*>(beside);
    graph_.capture_begin(other == nullptr ? at::cuda::MempoolId_t{0, 0} : other->pool_,
                         cudaStreamCaptureModeThreadLocal);  // loaders copy meanwhile
  }
  void end() override {
    graph_.capture_end();
    pool_ = graph_.pool();
  }
  void launch() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
  c10::MempoolId_t pool_ = {0, 0};
};

}  // namespace

std::unique_ptr<DeviceGraph> make_cuda_graph() { return std::make_unique<CudaGraph>(); }
#else
std::unique_ptr<DeviceGraph> make_cuda_graph() { return nullptr; }
#endif

}  // namespace stepop
