#include "runtime/tools/reproduce/what_differs.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/config/config.h"
#include "runtime/core/system/checksum.h"
#include "runtime/tools/code/compiler.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/run/data_files.h"
#include "runtime/train/run/device.h"
#include "runtime/train/run/git_tree.h"
#include "runtime/train/run/provenance.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

class Differences {
 public:
  Differences(const std::string& root, const KnownStart& start) : root_(root), start_(start) {}

  std::vector<std::string> find() {
    if (!start_.record) {
      add(fmt::format(
          "there is no record of the start at {}, which an older version made: its environment, "
          "libraries, data files and changes that were not committed are not known",
          start_.time));
      return std::move(found_);
    }
    const StartRecord& record = *start_.record;
    if (!record.is_whole && record.failures.empty()) {
      add(
          fmt::format("the start at {} was killed before git's state and the data files were "
                      "recorded",
                      start_.time));
    }
    for (const auto& failure : record.failures) {
      add(fmt::format("not recorded of the start at {}: {}", start_.time, failure));
    }
    for (const auto& tree : record.git) look_at(tree);
    look_at_data(record);
    look_at_checkpoint(record);
    look_at_machine(record);
    look_at_code(record);
    for (const auto& name : record.hidden) {
      add(
          fmt::format("the variable {} was set; its value is not kept, as its name is that of a "
                      "secret",
                      name));
    }
    return std::move(found_);
  }

 private:
  void add(std::string text) { found_.push_back(std::move(text)); }

  void look_at(const GitTree& tree) {
    std::error_code failed;
    if (!tree.commit.empty() && !has_commit(tree.folder, tree.commit)) {
      add(fs::is_directory(tree.folder, failed)
              ? fmt::format("git: the commit {} is not in {}", tree.commit, tree.folder)
              : fmt::format("git: {} is gone, of which the run had the commit {}", tree.folder,
                            tree.commit));
    }
    if (!tree.failure.empty()) {
      add(fmt::format("git: {}: {}{}", tree.folder, tree.failure,
                      tree.is_changed ? "; what was not committed is not kept" : ""));
    }
    if (!tree.patch.empty() &&
        file_checksum(root_ + "/configs/" + tree.patch) != tree.patch_checksum) {
      add(fmt::format("git: configs/{} is gone or damaged: what was not committed in {} is in it",
                      tree.patch, tree.folder));
    }
    if (tree.untracked.empty()) return;
    std::string names = list_text(tree.untracked);
    if (tree.more_untracked > 0) names += fmt::format(" and {} more", tree.more_untracked);
    add(fmt::format("git: {} had files that git does not know, which are not kept: {}", tree.folder,
                    names));
  }

  void look_at_data(const StartRecord& record) {
    if (record.data_checksums == data_checksums_text(DataChecksums::kNone)) {
      add("data_checksums: none: it is not known whether the data is what it was");
    }
    for (const auto& [key, before] : record.data) {
      const auto how = before.content.empty() ? DataChecksums::kSize : DataChecksums::kContent;
      const DataFile now = stepop::look_at_data(before.path, how);
      const std::string change = change_of_data(before, now);
      if (!change.empty()) add(fmt::format("{}: {} {}", key, before.path, change));
      const std::string& failure = before.failure.empty() ? now.failure : before.failure;
      if (change.empty() && !failure.empty()) {
        add(fmt::format("{}: it is not known whether {} is what it was: {}", key, before.path,
                        failure));
      }
    }
  }

  /// Checks another run's checkpoint; the run's own checkpoints are made again.
  void look_at_checkpoint(const StartRecord& record) {
    const std::string& path = record.checkpoint;
    if (!path.starts_with('/')) return;
    std::error_code failed;
    if (!fs::exists(path, failed)) {
      add(fmt::format("the checkpoint {}, from which it began, is gone", path));
      return;
    }
    try {
      if (record.checkpoint_checksum.empty() ||
          load_checkpoint(path).checksum == record.checkpoint_checksum) {
        return;
      }
      add(fmt::format("the checkpoint {}, from which it began, is another one now", path));
    } catch (const Error& error) {
      add(error.what());
    }
  }

  void look_at_machine(const StartRecord& record) {
    const int threads = at::get_num_threads();
    try {
      const Config config(start_.config);
      const c10::Device device = read_device(config);
      apply_backend_settings(config);
      for (const auto& change : changes_since(record, build_info(device))) {
        const bool is_mended = change.starts_with("threads:");
        add(change + (is_mended ? "; the commands set what it was" : ""));
      }
    } catch (const Error& error) {  // such as a missing GPU
      add(error.what());
    }
    at::set_num_threads(threads);
  }

  /// Compilers draw other first weights where layers are made as arguments of one call.
  void look_at_code(const StartRecord& record) {
    if (record.code_compiler.empty()) return;
    try {
      const Config config(start_.config);
      std::vector<std::string> flags;
      if (config.has("code_flags")) flags = config.get<std::vector<std::string>>("code_flags");
      const std::string* given = record.environment.find("STEPOP_CXX");  // the commands set it
      const Compiler now(given != nullptr ? *given : compiler_for(flags), {});
      if (now.identity() != record.code_compiler) {
        add(fmt::format("compiler of the user's own code: it was {}, here it is {}",
                        record.code_compiler, now.identity()));
      }
    } catch (const Error& error) {  // such as a missing compiler
      add(error.what());
    }
  }

  const std::string& root_;
  const KnownStart& start_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> what_differs(const std::string& root, const KnownStart& start) {
  return Differences(root, start).find();
}

std::optional<int64_t> threads_of(const StartRecord& start) {
  const Json json = try_read_ordered_json(start.made_by);
  if (!json.is_object() || !json.contains("threads") || !json["threads"].is_number_integer()) {
    return std::nullopt;
  }
  return json["threads"].get<int64_t>();
}

}  // namespace stepop
