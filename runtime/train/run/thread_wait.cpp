#include "runtime/train/run/thread_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace stepop {
namespace {

constexpr const char* kPolicy = "OMP_WAIT_POLICY";
constexpr const char* kSpins = "GOMP_SPINCOUNT";
constexpr const char* kBriefSpins = "1000";

bool has_variable() { return std::getenv(kPolicy) != nullptr || std::getenv(kSpins) != nullptr; }

}  // namespace

Variables variables_of_thread_wait(const std::string& name) {
  if (name == "sleep") return {{kPolicy, "passive"}, {kSpins, std::nullopt}};
  if (name == "spin") return {{kPolicy, "active"}, {kSpins, std::nullopt}};
  if (name == "brief") return {{kPolicy, std::nullopt}, {kSpins, kBriefSpins}};
  // libgomp's own number of spins. With the policy, threads of a Crowd spin 1000 times instead of
  // 100, which are too few to meet the next work of a training step.
  return {{kPolicy, "active"}, {kSpins, "300000"}};
}

void set_variables(const Variables& variables) {
  for (const auto& [name, value] : variables) {
    if (value) {
      ::setenv(name.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }
}

void set_default_thread_wait() {
  if (!has_variable()) set_variables(variables_of_thread_wait("auto"));
}

std::string read_thread_wait(const Config& config) {
  if (!config.has("thread_wait")) return {};
  auto name = config.get<std::string>("thread_wait");
  if (std::ranges::find(kThreadWaits, name) == std::end(kThreadWaits)) {
    throw config.error("thread_wait",
                       fmt::format("expected auto, sleep, brief or spin, found \"{}\"", name));
  }
  return name;
}

std::string own_thread_wait() {
  if (!has_variable()) return "auto";
  const auto is_set = [](const auto& variable) {
    const char* value = std::getenv(variable.first.c_str());
    return variable.second ? value != nullptr && *variable.second == value : value == nullptr;
  };
  for (const char* name : kThreadWaits) {
    if (std::ranges::all_of(variables_of_thread_wait(name), is_set)) return name;
  }
  return {};
}

}  // namespace stepop
