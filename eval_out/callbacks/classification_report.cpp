#include <ATen/ops/bincount.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "eval_out/callbacks/classes.h"
#include "runtime/core/system/atomic_file.h"

namespace stepop {
namespace {

/// Precision, recall and F1 of one class, or their averages.
struct ReportRow {
  std::string name;
  double precision = 0;
  double recall = 0;
  double f1 = 0;
  int64_t support = 0;  ///< The number of examples of the class.
};

double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// The report has a row for each class that is the true or the predicted class of an example.
struct Report {
  std::vector<ReportRow> classes;
  double accuracy = 0;
  ReportRow macro{"macro average"};
  ReportRow weighted{"weighted average"};
};

struct ReportParams {
  ClassKeys keys;
  bool by_class = false;
  ClassNames names;

  void declare(Parameters& p) {
    keys.declare(p);
    p.add("by_class", by_class, "log those of each class as well");
    names.declare(p);
  }
};

Report make_report(const CallbackArguments& arguments, const ReportParams& params) {
  const Classes classes(arguments, params.keys);
  const auto names = class_names(arguments, params.names, params.keys.target, classes.count());
  at::Tensor hits = at::zeros({classes.count()}, at::kLong);
  at::Tensor predictions = hits.clone();
  at::Tensor support = hits.clone();
  for_each_block(classes.rows(), classes.rows_per_block(), [&](int64_t first, int64_t count) {
    const Classes::Block block = classes.read(first, count);
    hits += at::bincount(block.truth.masked_select(block.truth.eq(block.predicted)), {},
                         classes.count());
    predictions += at::bincount(block.predicted, {}, classes.count());
    support += at::bincount(block.truth, {}, classes.count());
  });
  const auto rows = support.sum().item<int64_t>();
  Report report;
  report.accuracy = static_cast<double>(hits.sum().item<int64_t>()) / classes.counted(rows);
  for (int64_t i = 0; i < classes.count(); ++i) {
    const auto tp = hits[i].item<int64_t>();
    const auto predicted = predictions[i].item<int64_t>();
    const auto truly = support[i].item<int64_t>();
    if (predicted + truly == 0) continue;
    report.classes.push_back({names[static_cast<size_t>(i)], ratio(tp, predicted), ratio(tp, truly),
                              ratio(2 * tp, predicted + truly), truly});
  }
  for (const ReportRow& row : report.classes) {
    for (const bool is_weighted : {false, true}) {
      ReportRow& average = is_weighted ? report.weighted : report.macro;
      const double weight =
          is_weighted ? ratio(row.support, rows) : 1 / static_cast<double>(report.classes.size());
      average.precision += weight * row.precision;
      average.recall += weight * row.recall;
      average.f1 += weight * row.f1;
      average.support += row.support;
    }
  }
  return report;
}

std::string table(const Report& report) {
  size_t width = report.weighted.name.size();
  for (const ReportRow& row : report.classes) width = std::max(width, row.name.size());
  const auto line = [&](const ReportRow& row) {
    return fmt::format("{:>{}}  {:>9.4f}  {:>6.4f}  {:>6.4f}  {:>8}\n", row.name, width,
                       row.precision, row.recall, row.f1, row.support);
  };
  std::string text = fmt::format("{:>{}}  precision  recall      f1  examples\n", "class", width);
  for (const ReportRow& row : report.classes) text += line(row);
  text += "\n" + line(report.macro) + line(report.weighted);
  return text + fmt::format("{:>{}}  {:>9.4f}  {:>6}  {:>6}  {:>8}\n", "accuracy", width,
                            report.accuracy, "", "", report.macro.support);
}

Logs classification_report(const CallbackArguments& arguments, const ReportParams& params) {
  const Report report = make_report(arguments, params);
  write_file_atomically(arguments.path_of("report.txt"), table(report));
  Logs logs;
  const auto log = [&](const std::string& prefix, const ReportRow& row) {
    logs.scalars.set(prefix + "precision", row.precision);
    logs.scalars.set(prefix + "recall", row.recall);
    logs.scalars.set(prefix + "f1", row.f1);
  };
  logs.scalars.set("accuracy", report.accuracy);
  log("macro_", report.macro);
  log("weighted_", report.weighted);
  if (!params.by_class) return logs;
  for (const ReportRow& row : report.classes) log(row.name + "/", row);
  return logs;
}

STEPOP_REGISTER_CALLBACK(
    classification_report, classification_report,
    {"Precision, recall and F1 of each class, their plain and their weighted averages."});
STEPOP_CALLBACK_KEYS(classification_report, {"logits", KeyParameter::From::kFile}, {"target"});
STEPOP_CLASS_CHECK(classification_report, check_class_names);

}  // namespace
}  // namespace stepop
