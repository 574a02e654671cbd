#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/cli/command.h"
#include "tests/places.h"

namespace stepop {

/// The digits' config, whose schedule of rates does not depend on how long a training is.
inline constexpr const char* kConfig = STEPOP_SOURCE_DIR "/tests/data/digits.yaml";

/// A function of the shell: waits until a command ends well, at most a minute.
inline constexpr const char* kUntil =
    "until_ok() { for ((i = 0; i < 6000; ++i)); do eval \"$1\" >/dev/null 2>&1 && return; "
    "sleep 0.01; done; echo \"in vain: $1\" >&2; kill -9 $(jobs -p); exit 9; }; ";

/// What the program said, without the line of a warning that has these words.
inline std::string without_warning(const std::string& text, const std::string& words) {
  const size_t at = words.empty() ? std::string::npos : text.find(words);
  if (at == std::string::npos) return text;
  const size_t begin = text.rfind("warning: ", at);
  const size_t end = text.find('\n', at);
  return text.substr(0, begin) + (end == std::string::npos ? "" : text.substr(end + 1));
}

/// Without warnings that depend on the machine: it has other work, or little room on its disk.
inline std::string without_busy(const std::string& text) {
  std::string rest = text;
  for (const char* words : {"the machine is busy: ", "the training waits for its data: ",
                            ", and the rest of this training will write about "}) {
    rest = without_warning(rest, words);
  }
  return rest;
}

/// Warnings of a training of a few steps, and of a training that is to change no weight.
inline constexpr const char* kStillAverages = "the averages are still ";
inline constexpr const char* kNoWeightChanges = ": no weight changes";

/// Runs a line that must end well; `CONFIG` in it is the digits' config. It may warn with the words
/// of `warning`: by default that a training is far longer than the digits' schedule of rates.
inline CommandResult run_well(const ScratchFolder& folder, std::string line,
                              const std::string& warning =
                                  " and stays there for the rest of this "
                                  "training of ") {
  for (size_t at = 0; (at = line.find("CONFIG")) != std::string::npos;) {
    line.replace(at, 6, kConfig);
  }
  CAPTURE(line);
  // Threads that wait for each other are slow when several tests share the cores.
  const CommandResult result = run_in(folder, "export OMP_NUM_THREADS=1; " + line);
  CHECK(without_warning(without_busy(result.err), warning) == "");
  CHECK(result.exit_code == 0);
  return result;
}

/// The tensors of a checkpoint of the only run in `folder`.
inline State state_after(const ScratchFolder& folder, int64_t step) {
  return load_checkpoint(folder.path(only_run(folder)) + "/train/checkpoints/" +
                         checkpoint_name(step))
      .tensors;
}

/// What a training of two epochs of 23 steps ends with.
inline State trained(const std::string& more) {
  const ScratchFolder folder;
  run_well(folder, "stepop -n a -b CONFIG -t --num_steps 46 " + more);
  return state_after(folder, 46);
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

inline bool has_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
  });
}

/// Files below `folder` by their paths in it, sorted.
inline std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      names.push_back(std::filesystem::relative(entry.path(), folder).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// One whole training with the config as it ships, for the tests that look at what it leaves.
struct WholeRun {
  WholeRun() {
    result = run_well(folder, "stepop -n digits -b CONFIG -t");
    root = folder.path(only_run(folder));
    for (const auto& line : lines_of(read_bytes(root + "/train/metrics.jsonl"))) {
      metrics.push_back(nlohmann::json::parse(line));
    }
    const std::filesystem::path evaluations = *std::filesystem::directory_iterator(root + "/eval");
    outputs = (evaluations / "460" / "outputs.h5").string();
    checkpoint = root + "/train/checkpoints/model-460.safetensors";
  }

  ScratchFolder folder;
  CommandResult result;
  std::string root, outputs, checkpoint;
  std::vector<nlohmann::json> metrics;
};

inline const WholeRun& whole_run() {
  static const WholeRun run;
  return run;
}

}  // namespace stepop
