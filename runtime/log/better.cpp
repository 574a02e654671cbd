#include "runtime/log/better.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

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
  std::vector<std::string> words = words_of(name);
  std::reverse(words.begin(), words.end());  // the last word says most: `accuracy/error`
  for (const auto& word : words) {
    if (std::find(kLower.begin(), kLower.end(), word) != kLower.end()) return Better::kLower;
    if (std::find(kHigher.begin(), kHigher.end(), word) != kHigher.end()) return Better::kHigher;
  }
  return Better::kUnknown;
}

}  // namespace stepop
