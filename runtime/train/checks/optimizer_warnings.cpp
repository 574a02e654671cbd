#include "runtime/train/checks/optimizer_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/core/base/number_text.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

constexpr int64_t kMostRates = 1000;

/// Rates of Adam and its variants are about the change of a weight in a step.
constexpr double kHighestAdamRate = 1;
constexpr double kHighestRate = 100;

/// By default 1e-8; Inception was trained with 0.1 and even 1.
constexpr double kHighestEps = 0.5;

/// The share of a weight that one step takes away.
constexpr double kMostDecay = 0.05;

/// A gradient's norm is rarely below 0.01.
constexpr double kLeastClip = 1e-4;

/// One optimizer's part of the config.
class OptimizerWarnings {
 public:
  OptimizerWarnings(const Config& config, std::string name, std::vector<std::string>& texts)
      : config_(config), name_(std::move(name)), texts_(texts) {}

  /// The highest rate of the training.
  void look_at_rate(double highest, const std::string& length) {
    if (highest == 0) return add("lr", fmt::format("0 in all of {}: no weight changes", length));
    if (highest <= (is_adam() ? kHighestAdamRate : kHighestRate)) return;
    add("lr", fmt::format("{}: hardly any network learns with more than {}", short_number(highest),
                          is_adam() ? "0.1, as Adam changes each weight by about the rate" : "10"));
  }

  void look_at_betas() {
    const auto betas = numbers("betas");
    if (betas.size() != 2 || betas[0] <= betas[1]) return;
    add("betas", fmt::format("[{0}, {1}]: the average of the gradient is longer than that of its "
                             "square; is [{1}, {0}] meant?",
                             short_number(betas[0]), short_number(betas[1])));
  }

  void look_at_eps() {
    for (const char* key : {"eps", "adamw_eps"}) {
      if (!divides_by_root() || number(key) != 0) continue;
      add(key,
          "0: a weight whose gradient was 0 so far becomes 0 / 0, a NaN, at its first step; "
          "1e-8 is usual");
    }
    const auto eps = number("eps");
    if (!eps || *eps < kHighestEps || !is_adam()) return;
    add("eps", fmt::format("{}: it outweighs nearly any gradient, and the step is that of SGD with "
                           "a rate of lr / eps; 1e-8 is usual",
                           short_number(*eps)));
  }

  void look_at_decay(double highest_rate) {
    const auto decay = number("weight_decay");
    if (!decay || *decay * highest_rate < kMostDecay) return;
    add("weight_decay",
        fmt::format("{}: each step with lr {} takes {:.0f} % of each weight; 0.01 to 0.1 are usual",
                    short_number(*decay), short_number(highest_rate), 100 * *decay * highest_rate));
  }

  void look_at_clip() {
    const auto clip = number("clip_norm");
    if (!clip || *clip <= 0 || *clip >= kLeastClip) return;
    add("clip_norm", fmt::format("{}: gradients are made this short, and weights hardly change; 1 "
                                 "is usual",
                                 short_number(*clip)));
  }

 private:
  bool is_adam() const {
    return is_one_of({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "ScheduleFreeAdamW"});
  }

  /// Whether a change is divided by the root of an average of squares, or the like, plus eps.
  bool divides_by_root() const {
    return is_adam() || is_one_of({"Adadelta", "Adagrad", "LAMB", "Muon", "RMSprop"});
  }

  bool is_one_of(std::initializer_list<std::string_view> names) const {
    const Value* name = config_.peek(name_ + "/class");
    if (name == nullptr) name = config_.peek(name_);
    return name != nullptr && name->is_text() &&
           std::ranges::find(names, name->as_text()) != names.end();
  }

  std::optional<double> number(const char* key) const {
    const Value* value = config_.peek(name_ + "/" + key);
    if (value == nullptr) return std::nullopt;
    if (value->is_int()) return static_cast<double>(value->as_int());
    return value->is_float() ? std::optional(value->as_float()) : std::nullopt;
  }

  std::vector<double> numbers(const char* key) const {
    const Value* value = config_.peek(name_ + "/" + key);
    std::vector<double> all;
    for (const auto& item :
         value != nullptr && value->is_list() ? value->as_list() : Value::List{}) {
      if (item.is_float()) all.push_back(item.as_float());
      if (item.is_int()) all.push_back(static_cast<double>(item.as_int()));
    }
    return all;
  }

  void add(const char* key, const std::string& text) {
    texts_.emplace_back(config_.error(name_ + "/" + key, text).what());
  }

  const Config& config_;
  std::string name_;
  std::vector<std::string>& texts_;
};

/// The highest rate of all groups at any step that is looked at.
double highest_rate(const Update& update, int64_t steps) {
  const int64_t stride = std::max<int64_t>(steps / kMostRates, 1);
  double highest = 0;
  for (int64_t step = 0; step < steps; step += stride) {
    for (const double lr : update.optimizer().lrs(step)) highest = std::max(highest, lr);
  }
  return highest;
}

}  // namespace

std::vector<std::string> optimizer_warnings(const Settings& settings, const Context& context,
                                            const std::string& length) {
  std::vector<std::string> texts;
  for (const auto& [name, update] : context.updates) {
    const double highest = highest_rate(*update, settings.num_steps);
    OptimizerWarnings warnings(context.config, name, texts);
    warnings.look_at_rate(highest, length);
    warnings.look_at_betas();
    warnings.look_at_eps();
    warnings.look_at_decay(highest);
    warnings.look_at_clip();
  }
  return texts;
}

}  // namespace stepop
