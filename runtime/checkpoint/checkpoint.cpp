#include "runtime/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/config/value.h"
#include "runtime/error.h"

namespace stepop {
namespace {

constexpr const char* kFormat = "stepop-1";
constexpr std::string_view kPrefix = "model-";
constexpr std::string_view kSuffix = ".safetensors";

}  // namespace

std::string checkpoint_name(int64_t step) { return fmt::format("{}{}{}", kPrefix, step, kSuffix); }

std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint) {
  std::string path = folder + "/" + checkpoint_name(checkpoint.progress.global_step);
  save_safetensors(path, checkpoint.tensors,
                   {{"format", kFormat},
                    {"progress", checkpoint.progress.to_json()},
                    {"config", checkpoint.config}});
  return path;
}

Checkpoint load_checkpoint(const std::string& path) {
  SafetensorsFile file = load_safetensors(path);
  const auto format = file.metadata.find("format");
  if (format == file.metadata.end() || format->second != kFormat) {
    throw Error(fmt::format(
        "{}: not a checkpoint of stepop: its format is {}, expected \"{}\"", path,
        format == file.metadata.end() ? "not given" : "\"" + format->second + "\"", kFormat));
  }
  try {
    return {std::move(file.tensors), Progress::from_json(file.metadata["progress"]),
            file.metadata["config"]};
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

std::vector<int64_t> checkpoint_steps(const std::string& folder) {
  std::vector<int64_t> steps;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const int64_t step = list_index(std::string_view(name).substr(
        kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
    if (step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace stepop
