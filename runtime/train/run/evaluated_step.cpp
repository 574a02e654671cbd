#include "runtime/train/run/evaluated_step.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/core/base/json_text.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/read_file.h"

namespace stepop {
namespace {

std::string folder_of(const RunDirectory& run) { return run.root() + "/eval"; }

std::string path_of(const RunDirectory& run) { return folder_of(run) + "/reached.json"; }

}  // namespace

std::optional<int64_t> evaluated_step(const RunDirectory& run) {
  constexpr int64_t kMost = 10'000;  // bytes
  const auto text = try_read_file(path_of(run), kMost);
  if (!text) return std::nullopt;
  const auto json = try_read_json(*text);
  if (!json.is_object() || !json.contains("step")) return std::nullopt;
  const auto& step = json["step"];
  return step.is_number_integer() ? std::optional(step.get<int64_t>()) : std::nullopt;
}

void write_evaluated_step(const RunDirectory& run, int64_t step) {
  make_folders(folder_of(run));
  write_file_atomically(path_of(run), fmt::format("{{\"step\": {}}}\n", step));
}

}  // namespace stepop
