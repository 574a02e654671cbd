// Datasets in Python, read by stepop's loader and by PyTorch's DataLoader with as many workers.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/data/loader.h"
#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop::bench {
namespace {

constexpr int kRounds = 9;
constexpr const char* kScript = STEPOP_SOURCE_DIR "/tests/bench/python_datasets.py";

/// A loader's own order and the dataset, whose processes stay from one portion to the next.
class OurLoader {
 public:
  OurLoader(const std::string& name, const std::string& folder, int64_t batch_size)
      : config_(config_of(fmt::format("data: {{class: Python, python: {}, object: '{}:{}', "
                                      "kwargs: {{folder: {}}}, keys: [image, class]}}\n"
                                      "sampler: shuffle\n",
                                      python(), kScript, name, folder))),
        dataset_(datasets().build(config_, "data")),
        order_("data", samplers().build(config_, "sampler", *dataset_, uint64_t{1}),
               {.batch_size = batch_size, .drop_last = true, .max_batches = 0, .seed = 1}) {}

  double seconds(int64_t batches, int64_t workers) {
    LoaderOptions options;
    options.workers = workers;
    options.end_batch = batches;
    const Stopwatch watch;
    Loader loader(*dataset_, order_, options);
    while (loader.has_next()) loader.next();
    return watch.seconds();
  }

 private:
  Config config_;
  std::unique_ptr<Dataset> dataset_;
  BatchOrder order_;
};

void bench(Process& process, const ScratchFolder& folder, const std::string& name,
           const std::string& text, int64_t batch_size, int64_t batches) {
  OurLoader ours(name, folder.path(), batch_size);
  for (const int64_t workers : {1, 2}) {
    const auto times =
        take_turns(kRounds, {[&] { return ours.seconds(batches, workers); },
                             [&] {
                               return process.ask_seconds(
                                   fmt::format("{} {} {} {}", name, batch_size, batches, workers));
                             }});
    const auto speed = [&](size_t i) {
      return per_second(static_cast<double>(batches * batch_size), median(times[i]), "examples");
    };
    print_row({fmt::format("{}, {} worker{}", text, workers, workers == 1 ? "" : "s"),
               fmt::format("DataLoader, {} worker{}", workers, workers == 1 ? "" : "s"),
               speedup(times[0], times[1]), speed(0), speed(1)});
  }
}

}  // namespace

void bench_python_data() {
  print_header("Datasets in Python");
  const ScratchFolder folder;
  Process process({python(), "-B", kScript, folder.path()}, ".");
  process.read_line();
  bench(process, folder, "Jpegs", "JPEGs of 256x256, batch 32", 32, 24);
  bench(process, folder, "Small", "1x28x28 in memory, batch 16", 16, 1000);
  bench(process, folder, "Small", "1x28x28 in memory, batch 64", 64, 500);
}

}  // namespace stepop::bench
