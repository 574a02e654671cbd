#include "eval_out/callbacks/classes.h"

#include <ATen/ops/argmax.h>
#include <fmt/format.h>

#include <algorithm>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/number_text.h"
#include "runtime/data/class_numbers.h"

namespace stepop {
namespace {

/// The limit without scores: a larger number is hardly a class, and a count is kept for each
/// smaller number.
constexpr int64_t kMostClasses = 1'000'000;

bool is_integer(at::ScalarType dtype) { return c10::isIntegralType(dtype, /*includeBool=*/false); }

/// The shape [classes, ...] of the scores for classes of the shape [...].
bool are_scores(const std::vector<int64_t>& shape, const std::vector<int64_t>& of_classes) {
  return shape.size() == of_classes.size() + 1 && shape[0] > 0 &&
         std::equal(of_classes.begin(), of_classes.end(), shape.begin() + 1);
}

RowValues find_scores(const CallbackArguments& arguments, const std::string& key,
                      const RowValues& truth, bool needs_scores) {
  const EvalFile& file = arguments.data_out;
  if (file.keys_named(key).empty()) {
    throw Error(
        fmt::format("no logits: {} has no outputs/{}; it has: {}; name another key by \"logits\"",
                    file.path(), key, file.key_list()));
  }
  RowValues found(arguments, key, "logits", RowValues::From::kFile, RowValues::Lengths::kAny);
  const bool is_alike = found.is_ragged() == truth.is_ragged();
  const bool fits = is_alike && !truth.is_ragged() && are_scores(found.shape(), truth.shape()) &&
                    !c10::isComplexType(found.dtype());
  const bool are_classes = is_alike && found.shape() == truth.shape() && is_integer(found.dtype());
  if (fits || (!needs_scores && are_classes)) return found;
  std::string expected = "[classes";
  for (const int64_t length : truth.shape()) expected += fmt::format(", {}", length);
  if (truth.is_ragged()) {
    throw Error(
        fmt::format("{} has rows of different lengths: {} must have classes of these lengths",
                    truth.name(), found.name()));
  }
  throw Error(fmt::format("{} must have the shape {}] an example, found {}", found.name(), expected,
                          shape_text(found.shape())));
}

RowValues find_truth(const CallbackArguments& arguments, const std::string& key) {
  const EvalFile& file = arguments.data_out;
  if (file.keys_named(key).empty()) {
    std::string reason = "neither the dataset's labels nor " + file.path() + " have";
    bool is_there = false;
    try {
      is_there = arguments.data_in.labels(key).defined();
    } catch (const Error& error) {  // the dataset is missing
      reason = fmt::format("{}, and {} has no", error.what(), file.path());
    }
    if (!is_there) {
      throw Error(fmt::format(
          "no true classes: {} \"{}\"; the file has: {}; return labels/{} from eval_op, "
          "or name another key by \"target\"",
          reason, key, file.key_list(), key));
    }
  }
  RowValues found(arguments, key, "target", RowValues::From::kFileOrDataset,
                  RowValues::Lengths::kAny);
  if (is_integer(found.dtype())) return found;
  throw Error(fmt::format("{} must hold classes as integers, found {} {}", found.name(),
                          type_name(found.dtype()), shape_text(found.shape())));
}

}  // namespace

void ClassKeys::declare(Parameters& p, std::string_view about_logits) {
  p.add("logits", logits, about_logits);
  p.add("target", target,
        "the key of the true classes, in the outputs or the dataset's labels; -100 does not count");
}

void ClassNames::declare(Parameters& p) {
  p.add("class_names", class_names, "their names in order; by default those of the data");
}

Classes::Classes(const CallbackArguments& arguments, const ClassKeys& keys, bool needs_scores)
    : truth_(find_truth(arguments, keys.target)),
      scores_(find_scores(arguments, keys.logits, truth_, needs_scores)) {
  has_scores_ = scores_.shape() != truth_.shape();
  if (has_scores_) {
    count_ = scores_.shape()[0];
    return;
  }
  int64_t largest = -1;
  for_each_block(rows(), rows_per_block(), [&](int64_t first, int64_t count) {
    const Block block = read(first, count);
    if (block.rows() == 0) return;
    largest = std::max(
        {largest, block.predicted.max().item<int64_t>(), block.truth.max().item<int64_t>()});
  });
  if (largest < 0) counted(0);  // throws
  count_ = largest + 1;
}

int64_t Classes::rows_per_block() const {
  // Classes become int64, whatever the file has.
  if (truth_.is_ragged()) return truth_.rows_per_block();
  return std::min(scores_.rows_per_block(), rows_of_block(truth_.shape(), at::kLong));
}

Classes::Block Classes::read(int64_t first, int64_t count) const {
  Block block;
  block.truth = read_classes(truth_, first, count);
  if (has_scores_) {
    block.scores = scores_.read(first, count);
    scores_.refuse_nan(block.scores, first);
    block.scores = block.scores.movedim(1, -1).reshape({-1, count_});
    block.predicted = at::argmax(block.scores, 1);
  } else {
    block.predicted = read_classes(scores_, first, count);
    if (block.predicted.sizes() != block.truth.sizes()) {  // only of different lengths
      throw Error(fmt::format("{} and {} have other lengths", scores_.name(), truth_.name()));
    }
  }
  const at::Tensor counts = block.truth.ne(kLeftOutClass);
  if (counts.all().item<bool>()) return block;
  const at::Tensor places = counts.nonzero().squeeze(1);
  for (at::Tensor* values : {&block.scores, &block.predicted, &block.truth}) {
    if (values->defined()) *values = values->index_select(0, places);
  }
  return block;
}

double Classes::counted(int64_t number) const {
  if (number > 0) return static_cast<double>(number);
  throw NoNumbers(
      fmt::format("nothing counts: {} is {} in every row", truth_.name(), kLeftOutClass));
}

at::Tensor Classes::read_classes(const RowValues& source, int64_t first, int64_t count) const {
  const at::Tensor classes = source.read(first, count).to(at::kLong).flatten();
  const auto* values = classes.const_data_ptr<int64_t>();
  const int64_t end = count_ < 0 ? kMostClasses : count_;
  const bool is_truth = &source == &truth_;
  for (int64_t i = 0; i < classes.numel(); ++i) {
    if (values[i] >= 0 && values[i] < end) continue;
    if (is_truth && values[i] == kLeftOutClass) continue;
    const std::string where = source.is_ragged()
                                  ? rows_text(first, static_cast<size_t>(count))
                                  : source.row_text(first + i * count / classes.numel());
    const std::string place =
        fmt::format("{} has the class {} in {}", source.name(), values[i], where);
    if (values[i] < 0) throw Error(place + "; classes count from 0, and -100 leaves out");
    if (!has_scores_) {
      throw Error(fmt::format("{}; at most {} classes are counted, 0 to {}", place,
                              with_thousands(kMostClasses), with_thousands(kMostClasses - 1)));
    }
    throw Error(fmt::format("{}, but {} has the scores of {} classes, 0 to {}", place,
                            scores_.name(), count_, count_ - 1));
  }
  return classes;
}

OrderedMap<ClassCheck>& class_checks() {
  static OrderedMap<ClassCheck> checks;
  return checks;
}

void check_class_names(const Config& params, int64_t classes) {
  const auto names = read_parameters<ClassNames>(params).class_names;
  if (names.empty() || static_cast<int64_t>(names.size()) == classes) return;
  throw params.error("class_names",
                     fmt::format("expected {} names, found {}", classes, names.size()));
}

std::vector<std::string> class_names(const CallbackArguments& arguments, const ClassNames& given,
                                     const std::string& target, int64_t count) {
  check_class_names(arguments.params, count);
  if (!given.class_names.empty()) return given.class_names;
  auto names = class_names_of(arguments.config, target);
  names.resize(std::min(names.size(), static_cast<size_t>(count)));
  while (static_cast<int64_t>(names.size()) < count) names.push_back(std::to_string(names.size()));
  return names;
}

}  // namespace stepop
