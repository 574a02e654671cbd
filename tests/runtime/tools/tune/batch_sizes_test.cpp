#include "runtime/tools/tune/batch_sizes.h"

#include <ATen/core/Tensor.h>
#include <doctest/doctest.h>

#include <vector>

#include "runtime/core/pictures/image_file.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace batch_sizes_test {

/// A step takes a millisecond and 0.1 more for each example; memory is 100 MB and 10 for each.
BatchSizeRow measure(int64_t size) {
  const auto examples = static_cast<double>(size);
  return {.batch_size = size,
          .examples_per_second = examples / (1e-3 + 1e-4 * examples),
          .memory = 1e8 + 1e7 * examples};
}

std::vector<int64_t> sizes_of(const std::vector<BatchSizeRow>& rows) {
  std::vector<int64_t> sizes;
  for (const auto& row : rows) sizes.push_back(row.batch_size);
  return sizes;
}

TEST_CASE("sizes double until one fails, then the largest that fits is looked for") {
  const auto until_100 = [](int64_t size) {
    if (size > 100) throw CandidateFailed("out of memory\nmore of it");
    return measure(size);
  };
  const auto rows = measure_batch_sizes(until_100, {});
  CHECK(sizes_of(rows) == std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64, 96, 104});
  CHECK(rows.back().failure == "out of memory\nmore of it");
  const std::string table = batch_size_table(rows);
  CHECK(table.find("the largest that fits: 96\n") != std::string::npos);
  CHECK(table.find("more of it") == std::string::npos);
}

TEST_CASE("a size that the memory has no room for is not tried") {
  std::vector<int64_t> tried;
  const auto note = [&](int64_t size) {
    tried.push_back(size);
    return measure(size);
  };
  // 100 MB and 10 for each example: 90 examples fit into 1 GB.
  const auto rows = measure_batch_sizes(note, {.memory = 1e9});
  for (const int64_t size : tried) CHECK(size <= 90);
  CHECK(sizes_of(rows) == std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64, 80, 88, 96});
  CHECK(rows.back().failure == "not tried: it would need about 1.1 GB, and 1.0 GB are free");
}

TEST_CASE("no batch has more examples than there are, and the time ends the search") {
  CHECK(sizes_of(measure_batch_sizes(measure, {.most = 20})) ==
        std::vector<int64_t>{1, 2, 4, 8, 16});
  const auto until_4 = [](int64_t size) {
    if (size > 2) throw TimeOver();
    return measure(size);
  };
  const auto rows = measure_batch_sizes(until_4, {});
  CHECK(sizes_of(rows) == std::vector<int64_t>{1, 2});
  CHECK(batch_size_table(rows).find("the largest that was tried, 2, fits\n") != std::string::npos);
  CHECK_THROWS_AS(measure_batch_sizes([](int64_t) -> BatchSizeRow { throw TimeOver(); }, {}),
                  TimeOver);
}

TEST_CASE("the table names the size from which on speed grows little") {
  const auto rows = measure_batch_sizes(measure, {.most = 1024});
  // 10,000 n / (10 + n): 9,903 examples/s with 1,024, 9,624 with 256, 9,275 with 128.
  CHECK(batch_size_table(rows).find("from 256 on larger ones bring less than 5 % more speed\n") !=
        std::string::npos);
}

TEST_CASE("the picture shows speed above memory, and one size is enough for it") {
  const ScratchFolder folder;
  for (const int64_t most : {1, 64}) {
    const auto rows = measure_batch_sizes(measure, {.most = most});
    folder.write("a.png", batch_size_picture(rows));
    const at::Tensor picture = read_image(folder.path("a.png"));
    CHECK(picture.dim() == 3);
    CHECK(picture.size(1) > 600);
  }
  CHECK_THROWS_AS(batch_size_picture({{.batch_size = 1, .failure = "no"}}), Error);
}

}  // namespace batch_sizes_test
}  // namespace stepop
