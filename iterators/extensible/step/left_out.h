#pragma once

#include <string_view>
#include <vector>

namespace stepop::extensible {

/// A DL-Art-School component that is left out, and why; README.md has the same table.
struct LeftOut {
  std::string_view name;
  std::string_view reason;
};

const std::vector<LeftOut>& left_out_injectors();
const std::vector<LeftOut>& left_out_losses();

/// The reason why the component `name` is left out; empty for every other name.
std::string_view why_injector_is_left_out(std::string_view name);
std::string_view why_loss_is_left_out(std::string_view name);

}  // namespace stepop::extensible
