#include "runtime/tools/export/exported_network.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/tools/export/loaded_file.h"
#include "runtime/tools/graph/traced_network.h"
#include "runtime/train/step/random_fork.h"

namespace stepop {
namespace {

// The number of traced examples: 1 could be confused with a size that is broadcast.
constexpr int64_t kRows = 2;
constexpr int64_t kOtherRows = 3;
constexpr uint64_t kSeed = 7;

NetworkInputs copies_of(const NetworkInputs& inputs) {
  NetworkInputs copies;
  for (const auto& input : inputs) copies.push_back(input.defined() ? input.clone() : input);
  return copies;
}

Tensors defined(const NetworkInputs& inputs) {
  Tensors all;
  std::ranges::copy_if(inputs, std::back_inserter(all),
                       [](const auto& input) { return input.defined(); });
  return all;
}

std::string shape_text(const at::Tensor& tensor, bool has_free_batch, int64_t rows) {
  std::vector<std::string> sizes;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    const bool is_batch = i == 0 && has_free_batch && tensor.size(0) == rows;
    sizes.push_back(is_batch ? "batch" : std::to_string(tensor.size(i)));
  }
  std::string type = describe_tensor(tensor);
  return fmt::format("{} [{}]", type.substr(0, type.find(' ')), fmt::join(sizes, ", "));
}

/// Images of another height (2) or width (3), depending on `dimensions`: half of each image, or two
/// side by side.
std::optional<NetworkInputs> resized(const NetworkInputs& inputs,
                                     const std::vector<int64_t>& dimensions, bool larger) {
  NetworkInputs all = copies_of(inputs);
  bool is_any = false;
  for (auto& input : all) {
    if (!input.defined() || input.dim() != 4) continue;
    is_any = true;
    for (const int64_t dimension : dimensions) {
      if (input.size(dimension) < 2) return std::nullopt;
      input = larger ? at::cat({input, input}, dimension)
                     : input.narrow(dimension, 0, input.size(dimension) / 2).clone();
    }
  }
  return is_any ? std::optional(std::move(all)) : std::nullopt;
}

std::string sizes_of_images(const NetworkInputs& inputs) {
  std::vector<std::string> sizes;
  for (const auto& input : inputs) {
    if (!input.defined() || input.dim() != 4) continue;
    const std::string size = fmt::format("{} x {}", input.size(2), input.size(3));
    if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
  }
  return list_text(sizes);
}

class Exporter {
 public:
  Exporter(torch::nn::Module& network, const std::string& class_name,
           const std::vector<NetworkInputs>& calls, const std::string& class_names)
      : network_(network), class_name_(class_name), calls_(calls), class_names_(class_names) {}

  ExportedNetwork run() {
    has_rows_ = rows_of(calls_.front()) > 0;
    if (!try_rows(kRows, kOtherRows)) {
      // Tries the sizes that the run itself uses.
      exported_ = {};
      rows_ = rows_of(calls_.front());
      std::vector<OtherSize> others;
      add_sizes(calls_.front(), others);
      trace(calls_.front(), others);
      check_examples();
    }
    if (has_rows_) check_rows();
    check_sizes();
    describe();
    exported_.class_names = class_names_;
    return std::move(exported_);
  }

 private:
  NetworkInputs examples(int64_t begin, int64_t rows) const {
    return has_rows_ ? take_rows(calls_, begin, rows) : copies_of(calls_.front());
  }

  Tensors call(const NetworkInputs& inputs, uint64_t seed = kSeed) const {
    const RandomFork random(seed, c10::kCPU);
    return call_network(network_, copies_of(inputs));
  }

  /// Whether a trace with `rows` rows also matches the network for other numbers of rows. Throws
  /// Error when it does not match for other examples.
  bool try_rows(int64_t rows, int64_t other_rows) {
    if (!has_rows_) return false;
    const NetworkInputs example = examples(0, rows);
    const NetworkInputs more = examples(rows, other_rows);
    try {
      call(example);
      call(more);
    } catch (const std::exception&) {
      return false;  // the network needs a fixed batch size, or several rows for each example
    }
    rows_ = rows;
    std::vector<OtherSize> others{{more, 0}};
    add_sizes(example, others);
    trace(example, others);
    check_examples();
    try {
      return difference(loaded_->run(more, kSeed), call(more)) <= kMostDifference;
    } catch (const std::exception&) {
      return false;
    }
  }

  /// Adds images of another height, and of another width, if the network takes them.
  void add_sizes(const NetworkInputs& example, std::vector<OtherSize>& others) const {
    for (const int64_t dimension : {2, 3}) {
      for (const bool larger : {false, true}) {
        auto inputs = resized(example, {dimension}, larger);
        if (!inputs) return;
        try {
          call(*inputs);
        } catch (const std::exception&) {
          continue;
        }
        others.push_back({std::move(*inputs), dimension});
        break;
      }
    }
  }

  void trace(const NetworkInputs& example, const std::vector<OtherSize>& others) {
    example_ = copies_of(example);
    traced_ = trace_network(network_, class_name_, example, others);
    std::ostringstream file;
    torch::jit::ExtraFilesMap extra;
    if (!class_names_.empty()) extra["class_names.json"] = class_names_;
    traced_.script->save(file, extra);
    exported_.file = std::move(file).str();
    const auto inputs = defined(example);
    loaded_.emplace(exported_.file, inputs.empty() ? c10::kCPU : inputs.front().device());
  }

  /// Compares the file with the network; throws Error that begins with `failed` if they differ.
  void compare(const NetworkInputs& inputs, const std::string& failed) {
    const Tensors expected = call(inputs);
    Tensors found;
    try {
      for (int i = 0; i < 2; ++i) found = loaded_->run(inputs, kSeed);  // compiled after the first
    } catch (const std::exception& error) {
      throw Error(fmt::format("{}: it ends with: {}", failed, last_line(error_text(error))));
    }
    const double share = difference(found, expected);
    if (!(share <= kMostDifference)) {
      throw Error(
          std::isfinite(share)
              ? fmt::format("{}: they differ by {} of the largest output", failed,
                            short_number(share))
              : fmt::format("{}: the outputs have another shape, or are not finite", failed));
    }
    exported_.most_difference = std::max(exported_.most_difference, share);
    exported_.examples.push_back({defined(inputs), found});
  }

  /// The last line of an error, which in TorchScript's interpreter has the cause.
  static std::string last_line(const std::string& text) {
    const size_t last = text.find_last_not_of('\n');
    const size_t begin = text.rfind('\n', last);
    return begin == std::string::npos ? text : text.substr(begin + 1, last - begin);
  }

  void check_examples() {
    exported_.is_random =
        difference(call(example_, kSeed + 1), call(example_, kSeed)) > kMostDifference;
    const std::string network = "the traced network gives other outputs than the network itself, ";
    compare(example_, network + "for the examples with which it was traced");
    const std::string reason =
        traced_.read.empty()
            ? "forward keeps something of the first example, or decides by values that were read "
              "past LibTorch"
            : fmt::format(
                  "forward reads values of tensors ({}) and decides by them, which no "
                  "trace holds",
                  fmt::join(traced_.read, ", "));
    compare(other_examples(),
            fmt::format("{}for other examples than those with which it was traced; {}", network,
                        reason));
    exported_.compared.push_back("other examples");
    if (!traced_.read.empty()) {
      exported_.warnings.push_back(fmt::format(
          "forward reads values of tensors ({}): if it decides by them, the file has the decisions "
          "of the first example",
          fmt::join(traced_.read, ", ")));
    }
    if (exported_.is_random || !traced_.random.empty()) {
      exported_.warnings.push_back(fmt::format(
          "forward draws random numbers{}: each call of the file gives other outputs, as of the "
          "network; they were compared with the same seed",
          traced_.random.empty() ? "" : fmt::format(" ({})", fmt::join(traced_.random, ", "))));
    }
    if (!traced_.devices.empty()) {
      exported_.notes.push_back(fmt::format(
          "forward makes tensors on the device {}: the file works there, not on another one",
          fmt::join(traced_.devices, ", ")));
    }
    for (const auto& text : traced_.warnings) {
      exported_.warnings.push_back("LibTorch warns of this trace: " + last_line(text));
    }
  }

  /// As many other examples as the trace has rows.
  NetworkInputs other_examples() const {
    if (has_rows_) return examples(rows_, rows_);
    return calls_.back();
  }

  /// Checks batches of other sizes.
  void check_rows() {
    const std::vector<int64_t> sizes =
        rows_ == kRows ? std::vector<int64_t>{1, 5} : std::vector<int64_t>{rows_ + 1};
    std::vector<int64_t> fitting;
    for (const int64_t rows : sizes) {
      const NetworkInputs inputs = examples(rows_, rows);
      try {
        call(inputs);
      } catch (const std::exception&) {
        continue;  // the network itself does not accept this size
      }
      try {
        compare(inputs, "");
        fitting.push_back(rows);
      } catch (const Error&) {
        exported_.warnings.push_back(fmt::format(
            "a batch of {} is part of the file, as forward computes with this number: it is wrong "
            "for, or refuses, other numbers of examples",
            rows_));
        return;
      }
    }
    if (fitting.empty()) {
      exported_.warnings.push_back(fmt::format(
          "the network takes batches of {} examples alone, and so does the file", rows_));
      return;
    }
    exported_.has_free_batch = true;
    exported_.compared.push_back(fmt::format(
        "{} {}", fitting.size() == 1 ? "a batch of" : "batches of", fmt::join(fitting, " and ")));
  }

  /// Checks images of another size, if the network accepts any.
  void check_sizes() {
    for (const bool larger : {false, true}) {
      const auto inputs = resized(examples(0, rows_), {2, 3}, larger);
      if (!inputs) return;
      try {
        call(*inputs);
      } catch (const std::exception&) {
        continue;
      }
      const std::string size = sizes_of_images(*inputs);
      const size_t examples_before = exported_.examples.size();
      try {
        compare(*inputs, "");
        exported_.compared.push_back(fmt::format("images of {}", size));
      } catch (const Error&) {
        exported_.warnings.push_back(
            fmt::format("images of {} are part of the file, as forward computes with their height "
                        "and width: the network takes others ({}), the file does not",
                        sizes_of_images(example_), size));
      }
      exported_.examples.resize(examples_before);
      return;
    }
  }

  void describe() {
    exported_.inputs = traced_.inputs;
    for (const auto& input : defined(example_)) {
      exported_.input_shapes.push_back(shape_text(input, exported_.has_free_batch, rows_));
    }
    for (const auto& output : exported_.examples.front().outputs) {
      exported_.output_shapes.push_back(shape_text(output, exported_.has_free_batch, rows_));
    }
  }

  torch::nn::Module& network_;
  const std::string& class_name_;
  const std::vector<NetworkInputs>& calls_;
  const std::string& class_names_;
  bool has_rows_ = false;
  int64_t rows_ = 0;  ///< The number of rows in the trace.
  NetworkInputs example_;
  TracedNetwork traced_;
  std::optional<LoadedFile> loaded_;
  ExportedNetwork exported_;
};

}  // namespace

ExportedNetwork export_network(torch::nn::Module& network, const std::string& class_name,
                               const std::vector<NetworkInputs>& calls,
                               const std::string& class_names) {
  if (!is_callable(network)) {
    throw Error(
        "it derives from neither stepop::Network nor stepop::MultiNetwork, so only your code knows "
        "how to call it: derive it from one of these, with a forward or forward_all of "
        "tensors");
  }
  if (calls.empty())
    throw Error(
        "no call of it was seen in the steps and evaluations of the run: calls are seen of "
        "networks that STEPOP_REGISTER_MODEL registers");
  const bool was_training = network.is_training();
  network.eval();
  const at::NoGradGuard no_grad;
  ExportedNetwork exported = Exporter(network, class_name, calls, class_names).run();
  network.train(was_training);
  return exported;
}

}  // namespace stepop
