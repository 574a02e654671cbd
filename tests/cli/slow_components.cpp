// Components that take long, each telling by a file when it is inside.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "eval_out/callbacks/callback.h"
#include "runtime/data/dataset.h"

namespace stepop {
namespace {

constexpr std::chrono::seconds kVeryLong{30};

/// Another dataset, each example of which takes `seconds`; while the file `stuck` exists those from
/// number `stuck_from` on take half a minute, and the file `stuck.inside` appears.
class SlowDataset : public Dataset {
 public:
  explicit SlowDataset(const Config& params)
      : source_(datasets().build(params, "dataset")),
        seconds_(params.get("seconds", 0.0)),
        stuck_(params.get("stuck", "")),
        stuck_from_(params.get("stuck_from", 0)) {}

  int64_t size() const override { return source_->size(); }

  Example get(int64_t index, Random& random) const override {
    std::this_thread::sleep_for(seconds_);
    if (index >= stuck_from_ && !stuck_.empty() && std::filesystem::exists(stuck_)) {
      std::ofstream(stuck_ + ".inside");
      std::this_thread::sleep_for(kVeryLong);
    }
    return source_->get(index, random);
  }

  at::Tensor labels(std::string_view key) const override { return source_->labels(key); }

 private:
  std::unique_ptr<Dataset> source_;
  std::chrono::duration<double> seconds_;
  std::string stuck_;
  int64_t stuck_from_;
};

/// While the file `stuck_callback` exists, reads the outputs row by row for half a minute.
Logs slow_callback(const CallbackArguments& arguments) {
  if (!std::filesystem::exists("stuck_callback")) return {};
  std::ofstream("stuck_callback.inside");
  const std::string key = arguments.data_out.keys().front();
  for (auto left = kVeryLong / std::chrono::milliseconds(20); left > 0; --left) {
    arguments.data_out.read(key, left % arguments.data_out.rows(), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return {};
}

STEPOP_REGISTER_DATASET(SlowDataset, {"For tests.",
                                      {{"dataset", "", "the other one"},
                                       {"seconds", "0", "an example"},
                                       {"stuck", "", "a file that makes it half a minute"},
                                       {"stuck_from", "0", "from which example on"}}});
STEPOP_REGISTER_CALLBACK(slow_callback, slow_callback, {"For tests.", {}});

}  // namespace
}  // namespace stepop
