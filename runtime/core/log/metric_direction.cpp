#include "runtime/core/log/metric_direction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace stepop {
namespace {

constexpr std::array<std::string_view, 15> kLower = {
    "loss", "error", "err", "mae",        "mse", "rmse",  "nll",     "bce",
    "ce",   "fid",   "kid", "perplexity", "ppl", "lpips", "distance"};
constexpr std::array<std::string_view, 18> kHigher = {
    "accuracy", "acc", "top",  "precision", "recall", "f1",     "psnr",    "ssim", "auc",
    "iou",      "r2",  "bleu", "score",     "reward", "return", "returns", "dice", "likelihood"};

MetricDirection by_config(const std::string& name, const Value& config) {
  for (const std::string part : {"checkpoints", "stop_when"}) {
    const Value* metric = config.find(part + "/metric");
    const Value* mode = config.find(part + "/mode");
    if (metric == nullptr || mode == nullptr || *metric != Value(name)) continue;
    if (*mode == Value("max")) return MetricDirection::kHigher;
    if (*mode == Value("min")) return MetricDirection::kLower;
  }
  return MetricDirection::kUnknown;
}

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// The last word decides: `error` in `accuracy_error`.
MetricDirection by_words(std::string_view text) {
  while (!text.empty()) {
    const auto end = std::find_if(text.rbegin(), text.rend(), is_letter).base();
    text = text.substr(0, static_cast<size_t>(end - text.begin()));
    const auto begin = std::find_if_not(text.rbegin(), text.rend(), is_letter).base();
    std::string word(begin, text.end());
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto is_in = [&](const auto& words) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (is_in(kLower)) return MetricDirection::kLower;
    if (is_in(kHigher)) return MetricDirection::kHigher;
    text = text.substr(0, static_cast<size_t>(begin - text.begin()));
  }
  return MetricDirection::kUnknown;
}

/// Whether a name begins with a minus: scikit-learn's scorers are `neg_mean_squared_error` and the
/// like. In other places `negative` means the class.
bool is_negated(std::string_view text) {
  for (const std::string_view minus : {"neg", "negative_log"}) {
    const bool is_word = text.size() > minus.size() && !is_letter(text[minus.size()]);
    if (text.starts_with(minus) && is_word) return true;
  }
  return text.starts_with('-');
}

}  // namespace

MetricDirection metric_direction(const std::string& name, const Value* config) {
  const MetricDirection given =
      config != nullptr ? by_config(name, *config) : MetricDirection::kUnknown;
  if (given != MetricDirection::kUnknown) return given;
  // The part after the last slash decides: `perplexity/tokens` is a count.
  const auto last = std::string_view(name).substr(name.rfind('/') + 1);
  const MetricDirection by_name = by_words(last);
  if (by_name == MetricDirection::kUnknown || !is_negated(last)) return by_name;
  return by_name == MetricDirection::kLower ? MetricDirection::kHigher : MetricDirection::kLower;
}

bool read_more_is_better(const Config& part, const char* fallback) {
  constexpr const char* kMode = "mode";
  if (fallback == nullptr && !part.has(kMode)) {
    throw part.error(kMode,
                     "missing: max when more is better, as of an accuracy; min when less is, as of "
                     "a loss");
  }
  const auto mode = fallback == nullptr ? part.get<std::string>(kMode) : part.get(kMode, fallback);
  if (mode == "max" || mode == "min") return mode == "max";
  throw part.error(kMode, fmt::format("expected max or min, found \"{}\"", mode));
}

}  // namespace stepop
