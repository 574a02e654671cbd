// Evaluation outputs per second, against the same bytes by write(2), h5py and a file per example.
#include <ATen/core/Tensor.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "eval_out/write/eval_writer.h"
#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop::bench {
namespace {

constexpr int kRounds = 5;
constexpr size_t kReadyBatches = 4;

/// So many examples of one output, in batches; a file per example only for `files` of them.
struct Outputs {
  std::string name;  ///< As h5py_outputs.py knows it.
  std::string what;
  int64_t count;
  int64_t batch_size;
  int64_t files;
};

/// Batches that are used again and again: making outputs is no part of what is measured.
class ReadyBatches {
 public:
  explicit ReadyBatches(const Outputs& outputs) {
    for (size_t i = 0; i < kReadyBatches; ++i) batches_.push_back(make(outputs));
  }

  const EvalOutputs& operator[](int64_t number) const {
    return batches_[static_cast<size_t>(number) % kReadyBatches];
  }

 private:
  static EvalOutputs make(const Outputs& outputs) {
    const int64_t count = outputs.batch_size;
    if (outputs.name == "small") return {.outputs = {{"x", at::randn({count, 10})}}};
    if (outputs.name == "float image") return {.outputs = {{"x", at::randn({count, 3, 256, 256})}}};
    if (outputs.name == "uint8 image") {
      return {.outputs = {{"x", at::randint(256, {count, 3, 256, 256}, at::kByte)}}};
    }
    std::vector<at::Tensor> boxes;
    for (int64_t i = 0; i < count; ++i) boxes.push_back(at::randn({i % 20, 4}));
    return {.outputs = {{"x", boxes}}};
  }

  std::vector<EvalOutputs> batches_;
};

/// With `finish` the file is forced to the disk as well.
double write_outputs(const Outputs& outputs, const ReadyBatches& batches, const std::string& path,
                     EvalWriterOptions options, bool finish) {
  std::vector<int64_t> indices(static_cast<size_t>(outputs.batch_size));
  std::iota(indices.begin(), indices.end(), 0);
  const Stopwatch watch;
  {
    EvalWriter writer(path, outputs.count, {}, options);
    for (int64_t first = 0; first < outputs.count; first += outputs.batch_size) {
      writer.write(batches[first / outputs.batch_size], indices);
      for (auto& index : indices) index += outputs.batch_size;
    }
    if (finish) writer.finish();
  }
  const double seconds = watch.seconds();
  std::filesystem::remove(finish ? path : path + ".part");
  return seconds;
}

void write_bytes(int file, const at::Tensor& tensor) {
  const auto size = static_cast<ssize_t>(tensor.nbytes());
  if (::write(file, tensor.const_data_ptr(), tensor.nbytes()) != size) {
    throw std::runtime_error("the benchmark cannot write");
  }
}

/// The same bytes behind one another.
double write_plainly(const Outputs& outputs, const ReadyBatches& batches, const std::string& path,
                     bool sync) {
  const Stopwatch watch;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  for (int64_t first = 0; first < outputs.count; first += outputs.batch_size) {
    const EvalValue& value = batches[first / outputs.batch_size].outputs.at("x");
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) {
      write_bytes(file, *tensor);
    } else {
      for (const auto& example : std::get<std::vector<at::Tensor>>(value)) {
        if (example.numel() > 0) write_bytes(file, example);
      }
    }
  }
  if (sync) ::fsync(file);
  ::close(file);
  const double seconds = watch.seconds();
  std::filesystem::remove(path);
  return seconds;
}

void measure(const Outputs& outputs, Process& python, const std::string& path) {
  const ReadyBatches batches(outputs);
  const auto ask = [&](const std::string& how, int64_t count) {
    python.write_line(
        fmt::format("{}|{}|{}|{}|{}", how, outputs.name, count, outputs.batch_size, path));
    return std::stod(python.read_line());
  };
  const bool is_image = outputs.name.ends_with("image");
  std::vector<Portion> portions = {[&] { return write_outputs(outputs, batches, path, {}, false); },
                                   [&] { return write_plainly(outputs, batches, path, false); },
                                   [&] { return ask("append", outputs.count); },
                                   [&] {
                                     const double share = static_cast<double>(outputs.files) /
                                                          static_cast<double>(outputs.count);
                                     return ask("files", outputs.files) / share;
                                   }};
  if (is_image) {
    portions.emplace_back([&] { return write_outputs(outputs, batches, path, {}, true); });
    portions.emplace_back([&] { return write_plainly(outputs, batches, path, true); });
  }
  const auto times = take_turns(kRounds, portions);
  const auto row = [&](const std::string& baseline, size_t ours, size_t theirs) {
    const auto rate = [&](size_t portion) {
      return per_second(static_cast<double>(outputs.count), median(times[portion]), "ex");
    };
    print_row(
        {outputs.what, baseline, speedup(times[ours], times[theirs]), rate(ours), rate(theirs)});
  };
  row("write(2)", 0, 1);
  row("h5py, append by resize", 0, 2);
  row("a .npy file per example", 0, 3);
  if (is_image) row("both with fsync: write(2)", 4, 5);
}

}  // namespace

void bench_outputs() {
  print_header("Evaluation outputs written, ready batches");
  const ScratchFolder scratch;
  Process python({bench::python(), "-B", STEPOP_SOURCE_DIR "/tests/bench/h5py_outputs.py"}, ".");
  const std::string path = scratch.path("outputs.h5");
  measure({"small", "10 floats", 100'000, 100, 1'000}, python, path);
  measure({"float image", "image 3x256x256, float32", 128, 16, 64}, python, path);
  measure({"uint8 image", "image 3x256x256, uint8", 512, 16, 256}, python, path);
  measure({"ragged", "ragged, 0 to 19 boxes", 50'000, 100, 1'000}, python, path);
}

}  // namespace stepop::bench
