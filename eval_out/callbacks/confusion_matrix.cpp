#include <ATen/ops/bincount.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "eval_out/callbacks/classes.h"
#include "eval_out/callbacks/matrix_picture.h"
#include "runtime/formats/csv_file.h"
#include "runtime/system/atomic_file.h"

namespace stepop {
namespace {

/// Of more classes neither the table nor the picture could be looked at.
constexpr int64_t kMostMatrixClasses = 2000;

/// How many examples of each true class (row) were said to be of each class (column); int64
/// [classes, classes].
at::Tensor count_pairs(const Classes& classes) {
  const int64_t n = classes.count();
  at::Tensor counts = at::zeros({n * n}, at::kLong);
  for_each_block(classes.rows(), classes.rows_per_block(), [&](int64_t first, int64_t count) {
    const Classes::Block block = classes.read(first, count);
    counts.add_(at::bincount(block.truth.mul(n).add(block.predicted), {}, n * n));
  });
  return counts.view({n, n});
}

/// Each row divided by its sum, float64; a row without examples stays 0.
at::Tensor shares(const at::Tensor& counts) {
  return counts.to(at::kDouble).div(counts.sum(1, /*keepdim=*/true).clamp_min(1));
}

void write_csv(const std::string& path, const at::Tensor& values,
               const std::vector<std::string>& names) {
  AtomicFile file(path);
  std::string line = "true \\ predicted";
  for (const auto& name : names) line += "," + csv_cell(name);
  file.write(line + "\n");
  for (int64_t i = 0; i < values.size(0); ++i) {
    line = csv_cell(names[static_cast<size_t>(i)]);
    const at::Tensor row = values[i];
    for (int64_t j = 0; j < values.size(1); ++j) {
      line += row.is_floating_point() ? fmt::format(",{}", row.const_data_ptr<double>()[j])
                                      : fmt::format(",{}", row.const_data_ptr<int64_t>()[j]);
    }
    file.write(line + "\n");
  }
  file.commit();
}

Logs confusion_matrix(const CallbackArguments& arguments) {
  const bool normalize = arguments.params.get("normalize", false);
  const Classes classes(arguments);
  if (classes.count() > kMostMatrixClasses) {
    throw Error(fmt::format("a confusion matrix has at most {} classes, found {}",
                            kMostMatrixClasses, classes.count()));
  }
  const auto names = class_names(arguments, classes.count());
  const at::Tensor counts = count_pairs(classes);
  const at::Tensor normalized = shares(counts);
  write_csv(arguments.path_of("matrix.csv"), normalize ? normalized : counts, names);
  write_file_atomically(arguments.path_of("matrix.png"),
                        matrix_picture(counts, normalized, names, normalize));
  Logs logs;
  const auto correct = static_cast<double>(counts.trace().item<int64_t>());
  logs.scalars.set("accuracy", correct / static_cast<double>(classes.rows()));
  const at::Tensor occurs = counts.sum(1).gt(0);
  logs.scalars.set("balanced_accuracy",
                   normalized.diagonal().masked_select(occurs).mean().item<double>());
  return logs;
}

STEPOP_REGISTER_CALLBACK(
    confusion_matrix, confusion_matrix,
    {"How often each class was taken for each other, as a table and a picture.",
     class_parameters({{"normalize", "false", "shares of each true class instead of counts"},
                       {"class_names", "[]", "their names in order, instead of numbers"}})});

}  // namespace
}  // namespace stepop
