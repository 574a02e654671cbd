#include "runtime/tools/code/script_copies.h"

#include <fmt/format.h>

#include <filesystem>

#include "eval_out/callbacks/script.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/owner.h"
#include "runtime/core/system/read_file.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// Calls `call` with the path of each script, and the path of its copy in the run.
template <class Call>
void each_script(Value& config, const std::string& run, const Call& call) {
  const auto of_evaluation = [&](const std::string& evaluation, Value* settings) {
    Value* callbacks = settings == nullptr ? nullptr : settings->find("eval_callbacks");
    if (callbacks == nullptr || !callbacks->is_map()) return;
    for (auto& [name, callback] : callbacks->as_map()) {
      Value* script = callback.is_map() ? callback.find("path") : &callback;
      if (script == nullptr || !script->is_text() || !is_script(script->as_text())) continue;
      const std::string file = fs::path(script->as_text()).filename().string();
      call(*script, fmt::format("{}/code/scripts/{}/{}/{}", run, evaluation, name, file));
    }
  };
  of_evaluation("eval_hook", config.find("eval_hook"));
  Value* others = config.find("evaluations");
  if (others == nullptr || !others->is_map()) return;
  for (auto& [name, settings] : others->as_map()) of_evaluation(name, &settings);
}

}  // namespace

void save_scripts(const Value& config, const std::string& run) {
  Value own = config;
  each_script(own, fs::absolute(run).lexically_normal().string(),
              [](const Value& script, const std::string& copy) {
                const auto text = try_read_file(script.as_text());
                if (!text || script.as_text() == copy || try_read_file(copy) == text) return;
                make_folders(fs::path(copy).parent_path().string());
                write_file_atomically(copy, *text);
              });
}

std::vector<std::string> take_script_copies(Value& config, const std::string& run) {
  std::vector<std::string> notes;
  each_script(config, fs::absolute(run).lexically_normal().string(),
              [&](Value& script, const std::string& copy) {
                const fs::path path = script.as_text();
                std::error_code failed;
                if (!path.is_absolute() || fs::exists(path, failed) || path == copy) return;
                if (!fs::is_regular_file(copy, failed) || !foreign_reason(copy).empty()) return;
                notes.push_back(fmt::format("script    {} is gone: the run's own copy is taken, {}",
                                            path.string(), copy));
                const Origin origin = script.origin();
                script = Value(copy).set_origin(origin);
              });
  return notes;
}

}  // namespace stepop
