#include "runtime/run/made_by.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <nlohmann/json.hpp>

#include "runtime/run/start_record.h"

namespace stepop {
namespace {

/// An entry for people: `4 threads`, `oneDNN on`, `LibTorch 2.13.0`.
std::string entry_text(const std::string& key, const nlohmann::ordered_json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (key == "threads") return fmt::format("{} thread{}", text, text == "1" ? "" : "s");
  if (key == "build") return "a build of " + text;
  return key + " " + text;
}

}  // namespace

std::string made_by(const c10::Device& device) {
  const at::Context& context = at::globalContext();
  const nlohmann::ordered_json entries = {
      {"stepop", STEPOP_VERSION},
      {"build", program_time()},
      {"LibTorch", TORCH_VERSION},
      {"device", device.is_cpu() ? "cpu" : c10::DeviceTypeName(device.type(), /*lower_case=*/true)},
      {"instructions", at::get_cpu_capability()},
      {"threads", at::get_num_threads()},
      {"oneDNN", context.userEnabledMkldnn() ? "on" : "off"}};
  return entries.dump();
}

std::string describe_change_of_machine(const std::string& before, const std::string& now) {
  using Json = nlohmann::ordered_json;
  const Json old = Json::parse(before, nullptr, /*allow_exceptions=*/false);
  const Json current = Json::parse(now, nullptr, /*allow_exceptions=*/false);
  if (!old.is_object() || !current.is_object()) return "";
  std::string was;
  std::string is;
  for (const auto& [key, value] : current.items()) {
    if (!old.contains(key) || old[key] == value) continue;
    was += (was.empty() ? "" : ", ") + entry_text(key, old[key]);
    is += (is.empty() ? "" : ", ") + entry_text(key, value);
  }
  if (was.empty()) return "";
  return fmt::format(
      "the run was on {}, this start has {}: the bits may differ from those of an undisturbed run",
      was, is);
}

}  // namespace stepop
