#include "runtime/report/scalar_summary.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/log/metrics_scan.h"

namespace stepop {
namespace {

constexpr std::array<std::string_view, 21> kLower = {
    "loss",     "error", "err", "mae",   "mse",        "rmse",       "nll",
    "bce",      "ce",    "fid", "kid",   "perplexity", "ppl",        "lpips",
    "distance", "wer",   "cer", "brier", "kl",         "divergence", "regret"};
constexpr std::array<std::string_view, 21> kHigher = {
    "accuracy", "acc",   "top",   "precision", "recall", "f1",      "psnr",
    "ssim",     "auc",   "auroc", "iou",       "miou",   "dice",    "r2",
    "bleu",     "rouge", "map",   "score",     "reward", "correct", "likelihood"};

/// The words of a name: runs of letters and digits, in small letters.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

Better by_config(const std::string& name, const Value& config) {
  for (const std::string part : {"checkpoints", "stop_when"}) {
    const Value* metric = config.find(part + "/metric");
    const Value* mode = config.find(part + "/mode");
    if (metric == nullptr || mode == nullptr || *metric != Value(name)) continue;
    if (*mode == Value("max")) return Better::kHigher;
    if (*mode == Value("min")) return Better::kLower;
  }
  return Better::kUnknown;
}

}  // namespace

Better better_of(const std::string& name, const Value* config) {
  const Better told = config != nullptr ? by_config(name, *config) : Better::kUnknown;
  if (told != Better::kUnknown) return told;
  const std::vector<std::string> words = words_of(name);
  // The last word says most: `accuracy/error`.
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    if (std::find(kLower.begin(), kLower.end(), *word) != kLower.end()) return Better::kLower;
    if (std::find(kHigher.begin(), kHigher.end(), *word) != kHigher.end()) return Better::kHigher;
  }
  return Better::kUnknown;
}

std::optional<ScalarAt> best_of(const ScalarSummary& summary, Better better) {
  if (better == Better::kUnknown) return std::nullopt;
  return better == Better::kLower ? summary.min : summary.max;
}

OrderedMap<ScalarSummary> summarize_scalars(const std::string& metrics_file) {
  OrderedMap<ScalarSummary> scalars;
  std::error_code failed;
  if (!std::filesystem::exists(metrics_file, failed)) return scalars;
  scan_metrics(metrics_file, [&](const MetricsLine& line) {
    for (const auto& [name, value] : line.values) {
      const ScalarAt here{line.event.step, value};
      ScalarSummary& scalar = scalars[name];
      scalar.last = here;
      if (std::isnan(value)) continue;
      if (!scalar.min || value < scalar.min->value) scalar.min = here;
      if (!scalar.max || value > scalar.max->value) scalar.max = here;
    }
  });
  return scalars;
}

}  // namespace stepop
