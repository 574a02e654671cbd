// Examples per second of the loader by its number of workers.
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/measure/one_thread.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/image_grid.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/data/loader.h"
#include "runtime/data/stream_batches.h"
#include "runtime/data/stream_dataset.h"
#include "runtime/data/streams/tar_shards.h"
#include "tests/bench/measure.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"
#include "tests/scratch_folder.h"
#include "tests/tar_file.h"

namespace stepop::bench {
namespace {

constexpr int64_t kBatchSize = 64;

/// `get` at every index, and at::stack.
double time_plain_loop(const Dataset& dataset, const BatchOrder& order, int64_t batches) {
  const Stopwatch watch;
  for (int64_t batch = 0; batch < batches; ++batch) {
    std::vector<at::Tensor> images;
    std::vector<at::Tensor> classes;
    for (const int64_t index : order.indices(batch)) {
      Random random(0);
      Example example = dataset.get(index, random);
      images.push_back(example.tensors.at("image"));
      classes.push_back(example.tensors.at("class"));
    }
    at::stack(images);
    at::stack(classes);
  }
  return watch.seconds();
}

double time_loader(const Dataset& dataset, const BatchOrder& order, int64_t batches,
                   int64_t workers) {
  LoaderOptions options;
  options.workers = workers;
  options.end_batch = batches;
  const Stopwatch watch;
  Loader loader(dataset, order, options);
  while (loader.has_next()) loader.next();
  return watch.seconds();
}

void bench_dataset(const std::string& name, const std::string& dataset_yaml, int64_t batches) {
  const Config config = config_of("data: " + dataset_yaml + "\nsampler: shuffle\n");
  const auto dataset = datasets().build(config, "data");
  BatchOrderOptions options;
  options.batch_size = kBatchSize;
  options.drop_last = true;
  const BatchOrder order("data", samplers().build(config, "sampler", *dataset, uint64_t{1}),
                         options);
  const auto of = [&](int64_t workers) {
    return [&, workers] { return time_loader(*dataset, order, batches, workers); };
  };
  const auto times = take_turns(
      7, {of(0), of(1), of(2), [&] { return time_plain_loop(*dataset, order, batches); }});
  const auto text = [&](size_t i) {
    return per_second(static_cast<double>(batches * kBatchSize), median(times[i]), "examples");
  };
  print_row({name + ", 0 workers", "loop over get() and at::stack", speedup(times[0], times[3]),
             text(0), text(3)});
  for (size_t workers = 1; workers <= 2; ++workers) {
    print_row({fmt::format("{}, {} worker{}", name, workers, workers == 1 ? "" : "s"), "0 workers",
               speedup(times[workers], times[0]), text(workers), text(0)});
  }
}

/// The same examples by another config, in the same order.
void bench_same(const std::string& name, const std::string& yaml, const std::string& baseline,
                const std::string& baseline_yaml, int64_t batches) {
  std::vector<std::unique_ptr<Dataset>> data;
  std::vector<std::unique_ptr<BatchOrder>> orders;
  std::vector<Portion> portions;
  for (const auto& text : {yaml, baseline_yaml}) {
    const Config config = config_of("data: " + text + "\nsampler: shuffle\n");
    data.push_back(datasets().build(config, "data"));
    BatchOrderOptions options;
    options.batch_size = kBatchSize;
    orders.push_back(std::make_unique<BatchOrder>(
        "data", samplers().build(config, "sampler", *data.back(), uint64_t{1}), options));
    portions.push_back([&dataset = *data.back(), &order = *orders.back(), batches] {
      return time_loader(dataset, order, batches, 0);
    });
  }
  const auto times = take_turns(7, portions);
  const auto text = [&](size_t i) {
    return per_second(static_cast<double>(batches * kBatchSize), median(times[i]), "examples");
  };
  print_row({name, baseline, speedup(times[0], times[1]), text(0), text(1)});
}

/// Three views around `source`.
std::string in_three_views(const std::string& source) {
  return "{class: Subset, part: all, split: {parts: {all: 1}}, dataset: {class: Map, function: "
         "{class: rename, keys: {image: image}}, dataset: {class: Subset, fraction: 1, dataset: " +
         source + "}}}";
}

void bench_views(const ScratchFolder& scratch) {
  const std::string half = "{class: Synthetic, size: 10000, shape: [3, 64, 64]}";
  const std::string whole = "{class: Synthetic, size: 20000, shape: [3, 64, 64]}";
  const std::string files = "{class: ImageFolder, path: " + scratch.path("images") + "}";
  bench_same("Synthetic in three views", in_three_views(whole), "without views", whole, 300);
  bench_same("Concat of two Synthetic", "{class: Concat, datasets: [" + half + ", " + half + "]}",
             "one Synthetic", whole, 300);
  bench_same("PNG files in three views", in_three_views(files), "without views", files, 10);
  bench_same("PNG files cached in memory", "{class: Cached, dataset: " + files + "}", "PNG files",
             files, 10);
  bench_same("PNG files cached in a file",
             "{class: Cached, folder: " + scratch.path("cache") + ", dataset: " + files + "}",
             "PNG files", files, 10);
}

/// Every example once, in a thread like the loader's workers.
double time_in_worker(const Dataset& dataset) {
  const Stopwatch watch;
  std::thread worker([&] {
    compute_with_one_thread();
    for (int64_t i = 0; i < dataset.size(); ++i) {
      Random random(static_cast<uint64_t>(i));
      dataset.get(i, random);
    }
  });
  worker.join();
  return watch.seconds();
}

/// All that PairedImages has, each time and with a strength that can be seen.
constexpr const char* kAllAugmentations =
    "augmentations: {both: {h_flip_chance: 0.5, v_flip_chance: 0.5, rot90_chance: 1, "
    "elastic_transform_chance: 1, elastic_transform_alpha: 200, optical_distortion_chance: 1, "
    "coarse_dropout_chance: 1}, input: {colorjitter_chance: 1, gaussnoise_chance: 1, "
    "motionblur_chance: 1, randgamma_chance: 1, grayscale_chance: 0.5, compression_chance: 1}}";

/// As pix2pix reads its pairs: JPEGs side by side, 286 pixels a side, of which 256 are cut out.
void bench_pairs(const ScratchFolder& scratch) {
  constexpr int64_t kPairs = 8;
  const auto facades =
      datasets().build(config_of("data: {class: Facades, size: 300, examples: 8}"), "data");
  for (int64_t i = 0; i < kPairs; ++i) {
    Random random(0);
    const Example pair = facades->get(i, random);
    const at::Tensor both = at::cat({pair.tensors.at("input"), pair.tensors.at("target")}, 2);
    scratch.write(fmt::format("pairs/{}.jpg", i),
                  encode_jpeg(image_grid(both.unsqueeze(0)), ImageEncoding::kDefaultQuality));
  }
  const std::string source =
      "{class: PairedImages, load_size: 286, crop: 256, folder: " + scratch.path("pairs");
  const auto of = [&](const std::string& more) {
    return std::shared_ptr<Dataset>(
        datasets().build(config_of("data: " + source + more + "}"), "data"));
  };
  const auto augmented = of(std::string(", ") + kAllAugmentations);
  const auto plain = of("");
  const auto times = take_turns(
      7, {[&] { return time_in_worker(*augmented); }, [&] { return time_in_worker(*plain); }});
  const auto text = [&](size_t i) {
    return per_second(static_cast<double>(kPairs), median(times[i]), "pairs");
  };
  print_row({"PairedImages of 256x256, augmented", "no augmentation", speedup(times[0], times[1]),
             text(0), text(1)});
}

/// Shards of `images`, in the order of their names, against the files themselves, with one worker.
void bench_shards(const ScratchFolder& scratch, const std::string& images) {
  constexpr int64_t kBatches = 10;
  const std::string folder = "{class: ImageFolder, path: " + images + "}";
  const Config config = config_of("data: " + folder + "\nsampler: shuffle\n");
  const auto files = datasets().build(config, "data");
  std::string bytes;
  for (int64_t i = 0; i < files->size(); ++i) {
    Random random(0);
    const Example example = files->get(i, random);
    const std::string& path = example.texts.at("path");
    const std::string name = fmt::format("{:06}", i);
    bytes += tar_member(name + ".png", read_bytes(images + "/" + path)) +
             tar_member(name + ".cls", std::to_string(example.tensors.at("class").item<int64_t>()));
  }
  scratch.write("shards/0.tar", bytes + tar_end());
  const StreamDataset shards(
      config_of("path: " + scratch.path("shards")),
      [](const Config& params) { return std::make_unique<TarShards>(params); });
  const BatchOrder shuffled("data", samplers().build(config, "sampler", *files, uint64_t{1}),
                            {.batch_size = kBatchSize, .drop_last = true});
  const BatchOrder numbers("data", std::make_unique<RunningNumbers>(files->size()),
                           {.batch_size = kBatchSize, .drop_last = true});
  const auto of_shards = [&](int64_t buffer) {
    const Stopwatch watch;
    const SequenceOptions options{.seed = 1, .shuffles = buffer > 1, .buffer = buffer};
    Loader loader(std::make_shared<StreamBatches>(shards, numbers, options, SourceStart{}),
                  {.workers = 1, .end_batch = kBatches});
    while (loader.has_next()) loader.next();
    return watch.seconds();
  };
  const auto times = take_turns(7, {[&] { return time_loader(*files, shuffled, kBatches, 1); },
                                    [&] { return of_shards(1); }, [&] { return of_shards(300); }});
  const auto text = [&](size_t i) {
    return per_second(static_cast<double>(kBatches * kBatchSize), median(times[i]), "examples");
  };
  print_row({"TarShards of PNG, 1 worker", "ImageFolder of the same", speedup(times[1], times[0]),
             text(1), text(0)});
  print_row({"TarShards, shuffled by 300", "ImageFolder of the same", speedup(times[2], times[0]),
             text(2), text(0)});
}

}  // namespace

void bench_loader() {
  print_header("Loader: 3x64x64 images in batches of 64");
  bench_dataset("Synthetic", "{class: Synthetic, size: 20000, shape: [3, 64, 64]}", 300);

  const ScratchFolder scratch;
  const auto pictures = datasets().build(
      config_of("data: {class: Synthetic, size: 640, shape: [3, 64, 64]}"), "data");
  for (int64_t i = 0; i < pictures->size(); ++i) {
    Random random(0);
    const at::Tensor image = pictures->get(i, random).tensors.at("image");
    scratch.write(fmt::format("images/{}/{}.png", i % 10, i), image_grid_png(image.unsqueeze(0)));
  }
  bench_dataset("ImageFolder of PNG", "{class: ImageFolder, path: " + scratch.path("images") + "}",
                10);
  bench_views(scratch);
  bench_shards(scratch, scratch.path("images"));
  bench_pairs(scratch);
}

}  // namespace stepop::bench
