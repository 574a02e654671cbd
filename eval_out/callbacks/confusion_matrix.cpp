#include <ATen/ops/bincount.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "eval_out/callbacks/classes.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/core/pictures/canvas.h"
#include "runtime/core/system/atomic_file.h"

namespace stepop {
namespace {

/// With more classes, neither the table nor the picture is readable.
constexpr int64_t kMostMatrixClasses = 2000;

/// The number of examples of each true class (row) and predicted class (column); int64 [classes,
/// classes].
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

constexpr int64_t kMostWithNumbers = 30;
constexpr int64_t kLabelWidth = 240;  ///< Longer names are shortened.
constexpr int64_t kMatrixMargin = 16;
constexpr int64_t kBarWidth = 20;
/// The approximate side of a matrix with many classes.
constexpr int64_t kSide = 900;

std::string cell_text(int64_t count, double share, bool show_shares) {
  if (!show_shares) return std::to_string(count);
  if (share == 1) return "1";
  // Two decimals without the leading 0; shares that would round to 0 or 1 are "<.01" or ">.99".
  return share < 0.005 ? "<.01" : share > 0.994 ? ">.99" : fmt::format("{:.2f}", share).substr(1);
}

/// The layout of the picture.
struct Layout {
  int64_t classes;
  int64_t cell;        ///< The side of a cell, including its line.
  int64_t label_step;  ///< One class in `label_step` gets a label.
  int64_t label_size;  ///< The width of the longest name in the picture.
  bool has_numbers;
  int64_t left;
  int64_t top;

  int64_t side() const { return classes * cell; }
};

Layout lay_out(const at::Tensor& counts, const std::vector<std::string>& names) {
  Layout layout{};
  layout.classes = counts.size(0);
  layout.has_numbers = layout.classes <= kMostWithNumbers;
  const int64_t digits = static_cast<int64_t>(std::to_string(counts.max().item<int64_t>()).size());
  const int64_t text =
      pixel_width(std::string(static_cast<size_t>(std::max<int64_t>(digits, 4)), '0'));
  layout.cell = layout.has_numbers ? text + 8 : std::max<int64_t>(kSide / layout.classes, 1);
  layout.label_step = (pixel_height() + 4 + layout.cell - 1) / layout.cell;
  for (const auto& name : names) {
    layout.label_size = std::max(layout.label_size, pixel_width(fit_text(name, kLabelWidth)));
  }
  layout.left = kMatrixMargin + pixel_height() + 14 + layout.label_size + 8;
  const bool is_upwards = layout.label_size > layout.cell;
  layout.top =
      kMatrixMargin + pixel_height() + 14 + (is_upwards ? layout.label_size : pixel_height()) + 6;
  return layout;
}

void draw_labels(Canvas& canvas, const Layout& layout, const std::vector<std::string>& names) {
  const int64_t middle = (layout.cell - pixel_height()) / 2;
  for (int64_t i = 0; i < layout.classes; i += layout.label_step) {
    const std::string name = fit_text(names[static_cast<size_t>(i)], kLabelWidth);
    const int64_t width = pixel_width(name);
    const int64_t place = i * layout.cell;
    canvas.text(layout.left - 8 - width, layout.top + place + middle, name);
    if (layout.label_size <= layout.cell) {  // otherwise labels would touch
      canvas.text(layout.left + place + (layout.cell - width) / 2, layout.top - 6 - pixel_height(),
                  name);
    } else {
      canvas.text_upwards(layout.left + place + middle, layout.top - 8 - width, name);
    }
  }
  canvas.text(
      layout.left + std::max<int64_t>((layout.side() - pixel_width("predicted class")) / 2, 0),
      kMatrixMargin, "predicted class");
  canvas.text_upwards(
      kMatrixMargin,
      layout.top + std::max<int64_t>((layout.side() - pixel_width("true class")) / 2, 0),
      "true class");
}

void draw_cells(Canvas& canvas, const Layout& layout, const at::Tensor& counts,
                const at::Tensor& shares, bool show_shares) {
  const int64_t line = layout.cell >= 8 ? 1 : 0;
  const auto* count = counts.const_data_ptr<int64_t>();
  const auto* share = shares.const_data_ptr<double>();
  for (int64_t row = 0; row < layout.classes; ++row) {
    for (int64_t column = 0; column < layout.classes; ++column, ++count, ++share) {
      const int64_t x = layout.left + column * layout.cell;
      const int64_t y = layout.top + row * layout.cell;
      const Colour colour = *count == 0 ? kPaper : viridis(*share);
      canvas.fill(x, y, layout.cell - line, layout.cell - line, colour);
      if (!layout.has_numbers || *count == 0) continue;
      const std::string text = cell_text(*count, *share, show_shares);
      canvas.text(x + (layout.cell - pixel_width(text)) / 2,
                  y + (layout.cell - pixel_height()) / 2 + 1, text, ink_on(colour));
    }
  }
}

/// Draws the legend of the colours.
void draw_bar(Canvas& canvas, const Layout& layout) {
  const int64_t left = layout.left + layout.side() + kMatrixMargin;
  const int64_t height = std::max<int64_t>(layout.side(), 120);
  for (int64_t y = 0; y < height; ++y) {
    const double share = 1 - static_cast<double>(y) / static_cast<double>(height - 1);
    canvas.fill(left, layout.top + y, kBarWidth, 1, viridis(share));
  }
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const auto y = layout.top + static_cast<int64_t>((1 - share) * static_cast<double>(height - 1));
    canvas.fill(left + kBarWidth, y, 5, 1, kInk);
    canvas.text(left + kBarWidth + 9, y - pixel_height() / 2 + 1,
                fmt::format("{:.0f} %", 100 * share));
  }
}

/// A confusion matrix as the bytes of a PNG file: a row for each true class, a column for each
/// predicted one. `counts` is int64 [classes, classes]; `shares`, float64, has each row divided by
/// its sum and gives the colours. With up to 30 classes, each cell shows its count, or with
/// `show_shares` its share; a cell without examples is left blank.
std::string matrix_picture(const at::Tensor& counts, const at::Tensor& shares,
                           const std::vector<std::string>& names, bool show_shares) {
  const Layout layout = lay_out(counts, names);
  const int64_t bar = kMatrixMargin + kBarWidth + 9 + pixel_width("100 %");
  const std::string note = "colour: share of the true class";
  const int64_t width =
      std::max(layout.left + layout.side() + bar, kMatrixMargin + pixel_width(note));
  Canvas canvas(width + kMatrixMargin, layout.top + std::max<int64_t>(layout.side(), 120) + 12 +
                                           pixel_height() + kMatrixMargin);
  draw_labels(canvas, layout, names);
  canvas.fill(layout.left - 1, layout.top - 1, layout.side() + 1, layout.side() + 1, kFaintInk);
  draw_cells(canvas, layout, counts.contiguous(), shares.contiguous(), show_shares);
  draw_bar(canvas, layout);
  canvas.text(std::max<int64_t>(width - pixel_width(note), kMatrixMargin),
              canvas.height() - kMatrixMargin - pixel_height(), note);
  return canvas.png();
}

struct MatrixParams {
  ClassKeys keys;
  bool normalize = false;
  ClassNames names;

  void declare(Parameters& p) {
    keys.declare(p);
    p.add("normalize", normalize, "shares of each true class instead of counts");
    names.declare(p);
  }
};

Logs confusion_matrix(const CallbackArguments& arguments, const MatrixParams& params) {
  const bool normalize = params.normalize;
  const Classes classes(arguments, params.keys);
  if (classes.count() > kMostMatrixClasses) {
    throw Error(fmt::format("a confusion matrix has at most {} classes, found {}",
                            kMostMatrixClasses, classes.count()));
  }
  const auto names = class_names(arguments, params.names, params.keys.target, classes.count());
  const at::Tensor counts = count_pairs(classes);
  const at::Tensor normalized = shares(counts);
  write_csv(arguments.path_of("matrix.csv"), normalize ? normalized : counts, names);
  write_file_atomically(arguments.path_of("matrix.png"),
                        matrix_picture(counts, normalized, names, normalize));
  Logs logs;
  const auto correct = static_cast<double>(counts.trace().item<int64_t>());
  logs.scalars.set("accuracy", correct / classes.counted(counts.sum().item<int64_t>()));
  const at::Tensor occurs = counts.sum(1).gt(0);
  logs.scalars.set("balanced_accuracy",
                   normalized.diagonal().masked_select(occurs).mean().item<double>());
  return logs;
}

STEPOP_REGISTER_CALLBACK(
    confusion_matrix, confusion_matrix,
    {"How often each class was taken for each other, as a table and a picture."});
STEPOP_CALLBACK_KEYS(confusion_matrix, {"logits", KeyParameter::From::kFile}, {"target"});
STEPOP_CLASS_CHECK(confusion_matrix, check_class_names);

}  // namespace
}  // namespace stepop
