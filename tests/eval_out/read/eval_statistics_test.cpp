#include "eval_out/read/eval_statistics.h"

#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "eval_out/write/eval_writer.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace eval_statistics_test {

/// A file that h5py wrote, and what numpy says of its first 50,000 rows; the others are not valid.
constexpr const char* kWrite = R"(
import json, sys
import h5py, numpy as np
n, rows = 60000, 50000
random = np.random.default_rng(3)
said = {}
with h5py.File(sys.argv[1], 'w') as f:
    f.attrs['format_version'] = 1; f.attrs['rows'] = rows; f.attrs['complete'] = np.bool_(False)
    f['index'] = np.arange(n)
    floats = random.normal(5, 2, (n, 3, 20)).astype('float32')
    floats[7, 0, 3] = np.nan; floats[9, 1, 1] = np.inf; floats[-1] = 1e9
    f.create_dataset('outputs/floats', data=floats, chunks=(1000, 3, 20), compression='gzip')
    finite = floats[:rows].astype('float64'); finite = finite[np.isfinite(finite)]
    said['outputs/floats'] = [finite.min(), finite.max(), finite.mean(), rows * 60]
    f['labels/class'] = random.integers(-5, 10, n)
    valid = f['labels/class'][:rows]
    said['labels/class'] = [valid.min(), valid.max(), valid.mean(), rows]
    lengths = random.integers(0, 7, n); lengths[3] = 1000
    group = f.create_group('outputs/boxes'); group.attrs['ragged'] = np.bool_(True)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = random.random((offsets[-1], 4))
    group['offsets'] = offsets; group['values'] = values
    valid = values[:offsets[rows]]
    said['outputs/boxes'] = [valid.min(), valid.max(), valid.mean(), valid.size,
                             lengths[:rows].min(), lengths[:rows].max(), lengths[:rows].mean()]
    texts = ['ä' * int(k) for k in random.integers(0, 9, n)]
    f['outputs/text'] = np.array(texts, dtype=h5py.string_dtype())
    sizes = [len(text.encode()) for text in texts[:rows]]
    said['outputs/text'] = [min(sizes), max(sizes), float(np.mean(sizes))]
    said['stored'] = f['outputs/floats'].id.get_storage_size()
print(json.dumps(said, default=float))
)";

TEST_CASE("rows of weight 0 have no part in a label's statistics") {
  const ScratchFolder folder;
  const std::string path = folder / "outputs.h5";
  const std::vector<int64_t> rows = {0, 1, 2};
  EvalWriter writer(path, 3);
  writer.write(
      {.labels = {{"loss", {at::tensor({0.0F, 3.0F, 5.0F}), at::tensor({0.0F, 2.0F, 4.0F})}},
                  {"other", at::tensor({0.0F, 3.0F, 5.0F})}}},
      rows);
  writer.finish();
  const EvalFile file(path);
  const EvalStatistics loss = statistics_of(file, "labels/loss");
  CHECK(loss.numbers.count() == 2);
  CHECK(loss.numbers.min() == 3);
  CHECK(loss.numbers.mean() == 4);
  CHECK(loss.rows_without_weight == 1);
  CHECK(statistics_of(file, "labels/other").numbers.count() == 3);
  CHECK(statistics_of(file, "weights/loss").numbers.count() == 3);
}

TEST_CASE("ranges, means and lengths are those of numpy, over the valid rows alone") {
  const ScratchFolder folder;
  const std::string path = folder / "outputs.h5.part";
  const auto said = nlohmann::json::parse(run_python(kWrite, {path}));
  const EvalFile file(path);
  for (const char* key : {"outputs/floats", "labels/class", "outputs/boxes"}) {
    CAPTURE(key);
    const EvalStatistics statistics = statistics_of(file, key);
    CHECK(statistics.numbers.min() == said[key][0].get<double>());
    CHECK(statistics.numbers.max() == said[key][1].get<double>());
    CHECK(*statistics.numbers.mean() == doctest::Approx(said[key][2].get<double>()).epsilon(1e-9));
    CHECK(statistics.numbers.count() == said[key][3].get<int64_t>());
  }
  const EvalStatistics floats = statistics_of(file, "outputs/floats");
  CHECK(floats.numbers.nans() == 1);
  CHECK(floats.numbers.infinities() == 1);
  CHECK(floats.stored_bytes == said["stored"].get<int64_t>());  // as it is compressed
  CHECK(!floats.shortest);

  const EvalStatistics boxes = statistics_of(file, "outputs/boxes");
  CHECK(boxes.shortest == said["outputs/boxes"][4].get<int64_t>());
  CHECK(boxes.longest == said["outputs/boxes"][5].get<int64_t>());
  CHECK(boxes.mean_length == doctest::Approx(said["outputs/boxes"][6].get<double>()));

  const EvalStatistics text = statistics_of(file, "outputs/text");
  CHECK(text.shortest == said["outputs/text"][0].get<int64_t>());
  CHECK(text.longest == said["outputs/text"][1].get<int64_t>());
  CHECK(text.mean_length == doctest::Approx(said["outputs/text"][2].get<double>()));
  CHECK(text.numbers.count() == 0);
}

TEST_CASE("large rows behind many small ones are read few at once") {
  const ScratchFolder folder;
  const std::string path = folder / "outputs.h5";
  run_python(R"(
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'w') as f:
    f.attrs.update(format_version=1, rows=4012, complete=True)
    f['index'] = np.arange(4012)
    lengths = [0] * 4000 + [3_000_000] * 12
    f['outputs/r/values'] = np.ones(sum(lengths), np.uint8)
    f['outputs/r/offsets'] = np.concatenate([[0], np.cumsum(lengths)])
    f['outputs/r'].attrs['ragged'] = True
    f['outputs/text'] = [''] * 4000 + ['x' * 3_000_000] * 12
)",
             {path});
  for (const char* key : {"outputs/r", "outputs/text"}) {
    CAPTURE(key);
    int readings = 0;
    const EvalStatistics statistics = statistics_of(EvalFile(path, [&] { ++readings; }), key);
    CHECK(statistics.longest == 3'000'000);
    // 36 MB by 8 MB; of texts only where they are.
    if (std::string(key) == "outputs/r") CHECK(readings >= 7);
  }
}

}  // namespace eval_statistics_test
}  // namespace stepop
