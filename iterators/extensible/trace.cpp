#include "iterators/extensible/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <variant>

#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/run/device.h"

namespace stepop::extensible {

void Trace::begin() {
  synchronize(device_);
  begin_ = Clock::now();
}

void Trace::end(const Step& step, const Part& part, const StepState& state,
                const at::Tensor& value) {
  synchronize(device_);
  const std::chrono::duration<double, std::milli> spent = Clock::now() - begin_;
  std::vector<std::string> made;
  if (value.defined()) made.push_back(fmt::format("{:.4g}", value.item<double>()));
  for (const auto& use : part.writes) {
    const auto* tensor = std::get_if<at::Tensor>(&state.item(use.slot));
    if (tensor != nullptr) made.push_back(describe_tensor(*tensor));
  }
  table_.add({step.name, part.name, part.type, names(part.reads), names(part.writes),
              fmt::format("{}", fmt::join(made, "; ")), fmt::format("{:.2f}", spent.count())});
}

void Trace::add_off(const Step& step, const Part& part) {
  table_.add({step.name, part.name, part.type, names(part.reads), names(part.writes), "off", ""});
}

std::string Trace::names(const std::vector<Ports::Use>& uses) const {
  std::vector<std::string> list;
  for (const auto& use : uses) list.push_back(keys_.name(use.slot));
  return fmt::format("{}", fmt::join(list, ", "));
}

}  // namespace stepop::extensible
