// Graphs of the device: the operations of a stream, recorded to be run again on the same memory.
#include "tests/accelerator/graph.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/generator.h"
#include "tests/accelerator/memory.h"
#include "tests/accelerator/streams.h"

#if __has_include(<ATen/core/GraphImplInterface.h>)  // from LibTorch 2.13 on
#include <ATen/core/GraphImplInterface.h>
#define STEPOP_REGISTERED_GRAPHS
#endif

namespace stepop::accelerator {
namespace {

struct Recording {
  c10::StreamId stream = 0;
  c10::intrusive_ptr<c10::TensorImpl> random;  ///< The generator's state at the beginning.
  std::vector<std::function<void()>> works;    ///< They keep their tensors, so addresses stay.
  std::map<const void*, size_t> memory;        ///< Bytes by address.
};

std::mutex graph_mutex;
std::atomic<Recording*> recording = nullptr;
std::atomic<int64_t> launches = 0;

#ifdef STEPOP_REGISTERED_GRAPHS
std::atomic<uint64_t> last_pool = 0;

class Graph : public at::GraphImplInterface {
 public:
  explicit Graph(const at::GraphImplArgs& /*arguments*/ = {}) {}

  void capture_begin(at::MempoolId_t pool, at::GraphCaptureMode mode) override {
    TORCH_CHECK(current_stream() != 0, "the default stream cannot be captured");
    TORCH_CHECK(recording == nullptr && !has_ended_, "a capture is under way, or is done");
    TORCH_CHECK(mode == at::GraphCaptureMode::ThreadLocal,
                "other threads copy meanwhile, which the mode forbids");
    drain(current_stream());
    pool_ = pool == at::MempoolId_t{0, 0} ? at::MempoolId_t{++last_pool, 0} : pool;
    recorded_.stream = current_stream();
    recorded_.random = default_generator().unsafeGetGeneratorImpl()->get_state();
    recording = &recorded_;
  }

  void capture_end() override {
    TORCH_CHECK(recording == &recorded_ && current_stream() == recorded_.stream,
                "no capture is under way in this stream");
    recording = nullptr;
    has_ended_ = true;
    default_generator().unsafeGetGeneratorImpl()->set_state(*recorded_.random);
    for (const auto& [address, bytes] : recorded_.memory) {
      std::memset(reachable(address), 0xff, bytes);
    }
  }

  void replay() override {
    TORCH_CHECK(has_ended_, "there is no graph yet");
    drain(current_stream());
    ++launches;
    const at::AutoDispatchBelowADInplaceOrView without_autograd;
    for (const auto& work : recorded_.works) work();
  }

  void instantiate() override {}
  void reset() override { recorded_ = {}; }
  at::MempoolId_t pool() const override { return pool_; }
  void enable_debug_mode() override {}
  void debug_dump(const std::string& /*path*/) override {}

 private:
  Recording recorded_;
  at::MempoolId_t pool_ = {0, 0};
  bool has_ended_ = false;
};
#endif

}  // namespace

bool is_capturing() {
  const Recording* now = recording;
  return now != nullptr && now->stream == current_stream();
}

void record_work(std::function<void()> work) {
  if (!is_capturing()) return;
  const std::lock_guard guard(graph_mutex);
  recording.load()->works.push_back(std::move(work));
}

void note_of_capture(void* address, size_t bytes) {
  const std::lock_guard guard(graph_mutex);
  recording.load()->memory[address] = bytes;
  recording.load()->works.emplace_back(
      [address, bytes] { std::memset(reachable(address), 0xff, bytes); });
}

bool is_of_capture(const void* address) {
  const std::lock_guard guard(graph_mutex);
  return recording.load()->memory.contains(address);
}

int64_t take_graph_launches() { return launches.exchange(0); }

}  // namespace stepop::accelerator

#ifdef STEPOP_REGISTERED_GRAPHS
namespace at {
using HpuGraph = stepop::accelerator::Graph;
REGISTER_GRAPH_IMPL(HPU, HpuGraph)
}  // namespace at
#endif
