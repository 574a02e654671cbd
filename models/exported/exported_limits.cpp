#include "models/exported/exported_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "models/exported/exported_file.h"
#include "runtime/core/base/error.h"

namespace stepop {

using Json = nlohmann::json;

namespace {

/// `L['image'].size()[3]` as `image.size()[3]`, as PyTorch's message has it.
std::string without_frame(std::string text) {
  for (size_t begin = text.find("L['"); begin != std::string::npos; begin = text.find("L['")) {
    text.erase(begin, 3);
    const size_t end = text.find("']", begin);
    if (end == std::string::npos) return text;
    text.erase(end, 2);
  }
  return text;
}

/// The key of `range_constraints` for a size: `s6` of `Symbol('s6', positive=True, integer=True)`,
/// `2*s6` of `Mul(Integer(2), Symbol(...))`; empty for other forms.
std::string key_of_range(const std::string& expression) {
  constexpr std::string_view kSymbol = "Symbol('";
  constexpr std::string_view kProduct = "Mul(Integer(";
  std::string_view rest = expression;
  std::string factor;
  if (rest.starts_with(kProduct)) {
    rest.remove_prefix(kProduct.size());
    factor = std::string(rest.substr(0, rest.find(')'))) + "*";
    const size_t next = rest.find(kSymbol);
    if (next == std::string_view::npos) return "";
    rest.remove_prefix(next);
  }
  if (!rest.starts_with(kSymbol)) return "";
  rest.remove_prefix(kSymbol.size());
  return factor + std::string(rest.substr(0, rest.find('\'')));
}

}  // namespace

ExportedLimits::ExportedLimits(const Json& model, const std::vector<ExportedPort>& ports) {
  for (const auto& port : ports) {
    if (port.kind == ExportedPort::Kind::kInput) names_.push_back(port.name);
  }
  if (model.contains("guards_code") && model.at("guards_code").is_array()) {
    for (const auto& guard : model.at("guards_code")) add(guard.get<std::string>());
  }
  const Json ranges = model.value("range_constraints", Json::object());
  const Json& tensors = model.at("graph_module").at("graph").at("tensor_values");
  for (const auto& name : names_) {
    const Json& sizes = tensors.at(name).at("sizes");
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (!sizes[i].contains("as_expr")) continue;
      const auto found =
          ranges.find(key_of_range(sizes[i].at("as_expr").at("expr_str").get<std::string>()));
      if (found == ranges.end()) continue;
      // torch.export takes 2 as the least size of every free one, and holds for 0 and 1.
      const Json least = found->value("min_val", Json());
      const Json most = found->value("max_val", Json());
      const auto size = fmt::format("L['{}'].size()[{}]", name, i);
      if (least.is_number_integer() && whole_number(least) > 2) {
        add(fmt::format("{} >= {}", size, whole_number(least)));
      }
      if (most.is_number_integer()) add(fmt::format("{} <= {}", size, whole_number(most)));
    }
  }
}

void ExportedLimits::add(const std::string& code) {
  Limit limit{.text = without_frame(code), .condition = {}};
  const auto is_same = [&](const Limit& other) { return other.text == limit.text; };
  if (std::ranges::any_of(limits_, is_same)) return;
  try {
    limit.condition = SizeCondition(code, names_);
    limits_.push_back(std::move(limit));
  } catch (const Error&) {
    unread_.push_back(limit.text);
  }
}

void ExportedLimits::check(const std::vector<at::Tensor>& inputs) {
  if (limits_.empty()) return;
  size_t count = 0;
  bool is_last = true;
  for (const auto& input : inputs) {
    for (const int64_t size : input.sizes()) {
      is_last = is_last && count < last_.size() && last_[count] == size;
      ++count;
    }
  }
  if (is_last && count == last_.size() && count > 0) return;
  std::vector<int64_t> sizes;
  for (const auto& input : inputs) {
    sizes.insert(sizes.end(), input.sizes().begin(), input.sizes().end());
  }
  if (!known_.contains(sizes)) {
    for (const auto& [text, condition] : limits_) {
      if (condition.holds(inputs)) continue;
      std::vector<std::string> found;
      for (size_t i = 0; i < inputs.size() && i < names_.size(); ++i) {
        found.push_back(fmt::format("{} [{}]", names_[i], fmt::join(inputs[i].sizes(), ", ")));
      }
      throw Error(fmt::format(
          "the export holds for {}, found {}: the network's code may do something else for such "
          "sizes. Export it with an --example of them, or resize what the dataset gives",
          text, fmt::join(found, ", ")));
    }
    known_.insert(sizes);
  }
  last_ = std::move(sizes);
}

}  // namespace stepop
