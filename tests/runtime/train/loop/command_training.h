#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "eval_out/read/eval_reader.h"
#include "runtime/tools/start/run_command.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"
#include "tests/without_clock.h"

namespace stepop {

/// While it lives, the process is in another folder, and its output goes nowhere.
class QuietIn {
 public:
  explicit QuietIn(const std::string& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (const int stream : {1, 2}) {
      flush();
      streams_[stream] = ::fcntl(stream, F_DUPFD_CLOEXEC, 3);
      ::dup2(nowhere, stream);
    }
    ::close(nowhere);
  }
  ~QuietIn() {
    flush();
    for (const auto& [stream, copy] : streams_) {
      ::dup2(copy, stream);
      ::close(copy);
    }
    std::filesystem::current_path(before_);
  }
  QuietIn(const QuietIn&) = delete;
  QuietIn& operator=(const QuietIn&) = delete;

 private:
  static void flush() {
    std::fflush(stdout);
    std::fflush(stderr);
  }

  std::filesystem::path before_;
  std::map<int, int> streams_;
};

/// `stepop -n t -b test.yaml -t`, and `stepop -p RUN -t` once there is a run.
class CommandTraining {
 public:
  static constexpr int64_t kSteps = 6;

  /// `retention` is what the config says of `checkpoints`.
  explicit CommandTraining(const std::string& retention) {
    const std::string config =
        trainer_config("num_steps: " + std::to_string(kSteps) +
                       "\nlog_freq: 2\nckpt_freq: 2\ncheckpoints: " + retention +
                       "\neval_hook: {eval_callbacks: {matrix: confusion_matrix}}");
    folder_.write("test.yaml", config);
    config_ = Session(test_config(config), true, false, false).config_yaml();
  }

  /// The same as it stands.
  CommandTraining(const CommandTraining& other) : config_(other.config_) {
    std::filesystem::copy(
        other.folder_.path(), folder_.path(),
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  }
  CommandTraining& operator=(const CommandTraining&) = delete;

  /// What the Error says by which it ends, or "no error"; `checkpoint` is for -c.
  std::string start(const std::optional<std::string>& checkpoint = {}) {
    Arguments arguments;
    arguments.train = true;
    arguments.checkpoint = checkpoint;
    if (std::filesystem::is_directory(root())) {
      arguments.project = root();
    } else {
      arguments.name = "t";
      arguments.base = {"test.yaml"};
    }
    const QuietIn folder(folder_.path());
    return message_of([&] { exit_code_ = run_command(arguments); });
  }

  int exit_code() const { return exit_code_; }

  /// Empty before there is a run.
  std::string root() const {
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path("logs"), failed)) {
      if (!entry.path().filename().string().starts_with(".")) return entry.path().string();
    }
    return "";
  }

  std::string checkpoints() const { return root() + "/train/checkpoints"; }

  /// What each file in configs/ holds.
  const std::string& config() const { return config_; }

  /// The lines of metrics.jsonl without their times.
  std::vector<std::string> metrics() const {
    std::istringstream text(read_bytes(root() + "/train/metrics.jsonl"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) {
      lines.push_back(without_clock(nlohmann::ordered_json::parse(line)).dump());
    }
    return lines;
  }

  /// What every start writes alike, by its path in the run, without the names of times: pictures
  /// and results of evaluations.
  std::map<std::string, std::string> results() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root())) {
      const std::filesystem::path path = entry.path().lexically_relative(root());
      const std::string extension = path.extension().string();
      if (*std::next(path.begin()) == "superseded") continue;
      if (*path.begin() == "eval") {
        std::filesystem::path name;  // without `eval/<start>`
        for (auto part = std::next(path.begin(), 2); part != path.end(); ++part) name /= *part;
        const bool is_result = extension == ".json" || extension == ".csv" || extension == ".png";
        if (is_result) add(found, name, read_bytes(entry.path().string()));
        if (extension == ".h5") add(found, name, outputs(entry.path().string()));
      } else if (extension == ".png") {
        add(found, path.string(), read_bytes(entry.path().string()));
      }
    }
    return found;
  }

  /// How often log.txt tells of an error.
  int errors_in_log() const {
    const std::string log = read_bytes(root() + "/train/log.txt");
    int count = 0;
    for (size_t at = 0; (at = log.find(" error: ", at)) != std::string::npos; ++at) ++count;
    return count;
  }

  /// What a process that ended must not leave.
  std::vector<std::string> leftovers() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".tmp" || extension == ".part") found.push_back(entry.path().string());
    }
    return found;
  }

 private:
  /// A result that two starts made must be the same.
  static void add(std::map<std::string, std::string>& found, const std::string& name,
                  const std::string& bytes) {
    const auto [place, is_new] = found.emplace(name, bytes);
    if (place->second != bytes) found.emplace(name + ", otherwise", bytes);
  }

  /// All numbers of an evaluation's file, as bytes.
  static std::string outputs(const std::string& path) {
    const EvalFile file(path);
    std::string bytes = file.complete() ? "complete " : "cut ";
    for (const auto& key : file.keys()) {
      const at::Tensor values = file.read(key).contiguous();
      bytes +=
          key + std::string(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
    }
    return bytes;
  }

  ScratchFolder folder_;
  std::string config_;
  int exit_code_ = -1;
};

}  // namespace stepop
