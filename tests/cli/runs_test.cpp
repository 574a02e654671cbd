// `stepop runs [logs]`.

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "runtime/train/run/provenance.h"
#include "runtime/train/run/run_lock.h"
#include "runtime/train/run/start_record.h"
#include "tests/cli/command.h"

namespace stepop {
namespace runs_test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kConfig =
    "num_epochs: 20\n"
    "checkpoints: {metric: validation/eval_op/accuracy/accuracy, mode: max}\n";

/// A run made by hand, which wrote last so long ago. `state` as in process.json; empty: no such
/// file.
void make_run(const ScratchFolder& folder, const std::string& name, const std::string& metrics,
              const std::string& state, std::chrono::seconds age,
              const std::string& config = kConfig) {
  const std::string root = folder / name;
  folder.write(name + "/configs/train_2026-11-21T10-00-00.yaml", config);
  if (!metrics.empty()) folder.write(name + "/train/metrics.jsonl", metrics);
  if (!state.empty()) {
    RunProcess process = RunProcess::self("2026-11-21T10-00-00");
    process.state = state;
    if (state == "killed") process.state = "running", process.ticks = "1";
    folder.write(name + "/train/process.json", process.to_json());
  }
  const auto time = fs::file_time_type::clock::now() - age;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    fs::last_write_time(entry.path(), time);
  }
  fs::last_write_time(root, time);
}

std::string accuracy(int step, const std::string& value) {
  return "{\"step\": " + std::to_string(step) + ", \"epoch\": " + std::to_string(step / 23) +
         ", \"validation/eval_op/accuracy/accuracy\": " + value + "}\n";
}

std::string squeezed(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool is_space = c == ' ';
    if (!is_space || (!result.empty() && result.back() != ' ' && result.back() != '\n'))
      result += c;
  }
  return result;
}

TEST_CASE("the age of a run that trains is that of its last log, not of its sign of life") {
  const ScratchFolder folder;
  const std::string name = "logs/2026-11-21T11-00-00_running";
  make_run(folder, name, accuracy(23, "0.5"), "running", 10min + 1s);
  fs::last_write_time(folder / (name + "/train/process.json"), fs::file_time_type::clock::now());
  const CommandResult result = run_in(folder, "stepop runs");
  CHECK(result.out.find("  10 min ago\n") != std::string::npos);
}

TEST_CASE("runs are listed with state, step, epoch, metric and age, the newest first") {
  const ScratchFolder folder;
  make_run(folder, "logs/2026-11-21T10-00-00_ended", accuracy(230, "0.98") + accuracy(460, "0.97"),
           "done", 3h + 1min);
  make_run(folder, "logs/2026-11-21T11-00-00_running", accuracy(23, "0.5"), "running", 5s);
  make_run(folder, "logs/2026-11-21T09-00-00_killed", accuracy(1150, "\"NaN\""), "killed", 49h);
  make_run(folder, "logs/2026-11-21T08-00-00_new", "", "failed", 2h);
  make_run(folder, "logs/2026-11-21T07-00-00_old", "[1]\n{\"half", "", 2h, "a: [\n");
  make_run(folder, "logs/debug_runs/2026-11-21T12-00-00_d", "", "stopped", 2h);
  fs::create_directory(folder / "logs/.2026-11-21T12-00-00_half.123.tmp");
  folder.write("logs/notes.txt", "");

  const CommandResult result = run_in(folder, "stepop runs");
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  const std::string here = host_name() + ":" + std::to_string(getpid());
  // The name of the host says how wide its column is: spaces count as one.
  // A busy machine comes to the running one some seconds later.
  CHECK(std::regex_replace(squeezed(result.out), std::regex(" [6-9] s ago"), " 5 s ago") ==
        "run state step epoch last best age\n"
        "2026-11-21T11-00-00_running running " +
            here +
            " 23 1.0/20 0.5 0.5 5 s ago\n"
            "2026-11-21T10-00-00_ended ended 460 20.0/20 0.97 0.98 3 h ago\n"
            "2026-11-21T09-00-00_killed killed 1,150 50.0/20 nan - 2 days ago\n"
            "2026-11-21T08-00-00_new failed - - - - 2 h ago\n"
            "2026-11-21T07-00-00_old unknown - - - - 2 h ago\n"
            "last, best: validation/eval_op/accuracy/accuracy\n");

  const CommandResult debug = run_in(folder, "stepop runs logs -d");
  CHECK(debug.out.find("debug_runs/2026-11-21T12-00-00_d  stopped") != std::string::npos);
  CHECK(debug.out.find("_ended") != std::string::npos);
  const CommandResult one = run_in(folder, "stepop runs logs/2026-11-21T10-00-00_ended");
  CHECK(one.out ==
        "run                        state  step    epoch  last  best  age\n"
        "2026-11-21T10-00-00_ended  ended   460  20.0/20  0.97  0.98  3 h ago\n"
        "last, best: validation/eval_op/accuracy/accuracy\n");
}

TEST_CASE("runs are sorted, and listed for programs") {
  const ScratchFolder folder;
  make_run(folder, "logs/2026-11-21T10-00-00_a", accuracy(23, "0.5"), "done", 3h);
  make_run(folder, "logs/2026-11-21T11-00-00_b", accuracy(46, "0.9") + accuracy(69, "0.25"), "done",
           2h);
  make_run(folder, "logs/2026-11-21T12-00-00_c,\"c\"", "", "failed", 1h);
  const auto names = [&](const std::string& sort) {
    const auto list =
        nlohmann::json::parse(run_in(folder, "stepop runs --json --sort " + sort).out);
    std::string text;
    for (const auto& run : list) text += run["run"].get<std::string>()[20];
    return text;
  };
  CHECK(names("name") == "cba");
  CHECK(names("best") == "bac");
  CHECK(names("last") == "abc");
  CHECK(names("step") == "bac");
  CHECK(names("age") == "cba");
  CHECK(names("state") == "bac");
  const auto list = nlohmann::json::parse(run_in(folder, "stepop runs --json").out);
  CHECK(list[1]["folder"] == "logs/2026-11-21T11-00-00_b");
  CHECK(list[1]["best"] == 0.9);
  CHECK(list[1]["step"] == 69);
  CHECK(list[1]["num_epochs"] == 20.0);
  CHECK(list[1]["metric"] == "validation/eval_op/accuracy/accuracy");
  CHECK(list[0]["best"].is_null());
  const std::string csv = run_in(folder, "stepop runs --csv").out;
  CHECK(
      csv.starts_with("run,folder,state,step,epoch,num_epochs,metric,last,best,age_seconds\n"
                      "\"2026-11-21T12-00-00_c,\"\"c\"\"\",\"logs/2026-11-21T12-00-00_c,"
                      "\"\"c\"\"\",failed,,,"));
  CHECK(csv.find("2026-11-21T11-00-00_b,logs/2026-11-21T11-00-00_b,ended,69,3.0,20.0,"
                 "validation/eval_op/accuracy/accuracy,0.25,0.9,7") != std::string::npos);
  CHECK(run_in(folder, "stepop runs --sort up").err ==
        "stepop: stepop runs: --sort up: expected name, state, step, last, best or age\n");
  CHECK(run_in(folder, "mkdir none; stepop runs none --json").out == "[]\n");
}

TEST_CASE("--commands shows the command line of each run, and which process trains it") {
  const ScratchFolder folder;
  make_run(folder, "logs/2026-11-21T10-00-00_a", accuracy(23, "0.5"), "running", 3h);
  make_run(folder, "logs/2026-11-21T11-00-00_b", "", "done", 2h);
  const std::string start = "/configs/train_2026-11-21T10-00-00";
  folder.write(
      "logs/2026-11-21T10-00-00_a" + start + ".json",
      StartRecord{.kind = "new", .command = "stepop -n a -b 'my configs/a.yaml' -t"}.to_json());
  const std::string process = fmt::format("{}:{}", host_name(), getpid());
  const std::string out = run_in(folder, "stepop runs --commands").out;
  CHECK(out.ends_with(
      "\n2026-11-21T11-00-00_b, ended\n  no command line is known\n"
      "2026-11-21T10-00-00_a, running " +
      process + " since 2026-11-21T10-00-00\n  stepop -n a -b 'my configs/a.yaml' -t\n"));
  const auto list = nlohmann::json::parse(run_in(folder, "stepop runs --json --commands").out);
  CHECK(list[1]["pid"] == getpid());
  CHECK(list[1]["command"] == "stepop -n a -b 'my configs/a.yaml' -t");
  CHECK(list[0]["command"] == "");
}

TEST_CASE("a table fits 100 columns, and names that would look alike stay whole") {
  const ScratchFolder folder;
  const std::string name =
      "logs/2026-11-21T10-00-00_a_very_long_name_that_says_all_about_the_run_and_more";
  make_run(folder, name + "_lr_1", accuracy(23, "0.5"), "done", 2h);
  make_run(folder, "logs/2026-11-21T10-00-00_b",
           "{\"step\": 5, \"epoch\": 1, \"train/log_op/loss\": 0.25}\n", "done", 2h, "a: 1\n");
  const CommandResult fits = run_in(folder, "stepop runs");
  CHECK(fits.out.ends_with("\na: train/log_op/loss\nb: validation/eval_op/accuracy/accuracy\n"));
  CHECK(fits.out.find("0.25  0.25  a   2 h ago\n") != std::string::npos);
  CHECK(fits.out.find("...") != std::string::npos);
  for (size_t begin = 0; begin < fits.out.size();) {
    const size_t end = fits.out.find('\n', begin);
    CHECK(end - begin <= 100);
    begin = end + 1;
  }
  // Cut in the middle these two would be one.
  fs::rename(folder / name + "_lr_1", folder / name + "_lr_1_x_seed_12345678901234567890");
  make_run(folder, name + "_lr_2_x_seed_12345678901234567890", accuracy(23, "0.5"), "done", 2h);
  const CommandResult alike = run_in(folder, "stepop runs");
  CHECK(alike.out.find("_lr_1_x_seed_12345678901234567890") != std::string::npos);
  CHECK(alike.out.find("_lr_2_x_seed_12345678901234567890") != std::string::npos);
}

TEST_CASE("folders without runs say so, and what is no folder is refused") {
  const ScratchFolder folder;
  const CommandResult none = run_in(folder, "stepop runs");
  CHECK(none.err ==
        "stepop: stepop runs: logs: no such folder; give one with runs in it: stepop runs [logs] "
        "[--best METRIC] [--where KEY=VALUE] [--json | --csv]\n");
  CHECK(none.exit_code == 2);
  fs::create_directories(folder / "logs/debug_runs");
  const CommandResult empty = run_in(folder, "stepop runs logs");
  CHECK(empty.out ==
        "logs: no runs in this folder but those of -d in debug_runs/: stepop runs -d lists them\n");
  CHECK(empty.exit_code == 0);
  const CommandResult stray = run_in(folder, "stepop runs logs --lr 3");
  CHECK(stray.err.starts_with("stepop: stepop runs does not take --lr\nstepop runs [logs] "));
  CHECK(run_in(folder, "stepop runs a b")
            .err.starts_with("stepop: stepop runs: stray word \"b\"\nstepop runs [logs] "));
}

/// Three runs that differ in their learning rate, optimizer and numbers.
void make_three(const ScratchFolder& folder) {
  const auto config = [](const std::string& lr, const std::string& optimizer) {
    return "optimizer: {class: " + optimizer + ", lr: " + lr + "}\nmodel: LeNet\n" + kConfig;
  };
  const auto metrics = [](const std::string& loss, const std::string& last) {
    return "{\"step\": 5, \"train/log_op/loss\": " + loss +
           ", \"validation/eval_op/accuracy/accuracy\": 0.5, \"train/log_op/gain\": 1}\n"
           "{\"step\": 10, \"train/log_op/loss\": " +
           last + "}\n";
  };
  make_run(folder, "logs/2026-11-21T10-00-00_a", metrics("0.25", "0.5"), "done", 3h,
           config("1e-3", "Adam"));
  make_run(folder, "logs/2026-11-21T11-00-00_b", metrics("0.125", "\"NaN\""), "failed", 2h,
           config("3e-3", "SGD"));
  make_run(folder, "logs/2026-11-21T12-00-00_long", metrics("1", "0.75"), "done", 1h,
           config("1", "Adam"));
  make_run(folder, "logs/2026-11-21T13-00-00_new", "", "killed", 1h, config("1", "SGD"));
}

TEST_CASE("a run whose value is NaN comes after those that have a number, also below 0") {
  const ScratchFolder folder;
  make_run(folder, "logs/2026-11-21T10-00-00_a", accuracy(23, "-0.5"), "done", 4h);
  make_run(folder, "logs/2026-11-21T11-00-00_b", accuracy(23, "-0.9") + accuracy(46, "NaN"), "done",
           3h);
  make_run(folder, "logs/2026-11-21T12-00-00_c", accuracy(23, "0"), "done", 2h);
  make_run(folder, "logs/2026-11-21T13-00-00_d", accuracy(23, "NaN"), "done", 1h);
  const auto names = [&](const std::string& sort) {
    const auto list =
        nlohmann::json::parse(run_in(folder, "stepop runs --json --sort " + sort).out);
    std::string text;
    for (const auto& run : list) text += run["run"].get<std::string>()[20];
    return text;
  };
  CHECK(names("last") == "cabd");
  CHECK(names("best") == "cabd");
}

TEST_CASE("--best shows and sorts by any number, whose last words are enough") {
  const ScratchFolder folder;
  make_three(folder);
  const CommandResult best = run_in(folder, "stepop runs --best train/log_op/loss");
  CHECK(squeezed(best.out) ==
        "run state step epoch last best age\n"
        "2026-11-21T11-00-00_b failed 10 0.0/20 nan 0.125 2 h ago\n"
        "2026-11-21T10-00-00_a ended 10 0.0/20 0.5 0.25 3 h ago\n"
        "2026-11-21T12-00-00_long ended 10 0.0/20 0.75 0.75 60 min ago\n"
        "2026-11-21T13-00-00_new killed - - - - 60 min ago\n"
        "last, best: train/log_op/loss\n");
  CHECK(run_in(folder, "stepop runs --best loss").out == best.out);
  CHECK(run_in(folder, "stepop runs --best train/loss").out == best.out);
  const auto list =
      nlohmann::json::parse(run_in(folder, "stepop runs --json --best loss --sort name").out);
  CHECK(list[2]["best"] == 0.125);
  CHECK(list[2]["metric"] == "train/log_op/loss");
  CHECK(list[2]["last"].is_null());
  CHECK(run_in(folder, "stepop runs --best lose").err ==
        "stepop: stepop runs: --best: no run has logged \"lose\"; there are train/log_op/loss, "
        "validation/eval_op/accuracy/accuracy, train/log_op/gain\n");
  CHECK(run_in(folder, "stepop runs --best gain").err ==
        "stepop: stepop runs: --best gain: its name does not say whether lower or higher is "
        "better: --best min:gain or --best max:gain\n");
  CHECK(run_in(folder, "stepop runs --best max:gain").exit_code == 0);
  // If several have it, the evaluation's is meant.
  const std::string losses =
      "{\"step\": 5, \"train/log_op/loss\": 1, \"validation/log_op/loss\": 2";
  folder.write("logs/2026-11-21T10-00-00_a/train/metrics.jsonl", losses + "}\n");
  CHECK(run_in(folder, "stepop runs --best loss").err ==
        "stepop: stepop runs: --best: \"loss\" may be any of train/log_op/loss, "
        "validation/log_op/loss\n");
  folder.write("logs/2026-11-21T10-00-00_a/train/metrics.jsonl",
               losses + ", \"validation/eval_op/loss\": 3}\n");
  CHECK(run_in(folder, "stepop runs --best loss").out.ends_with("validation/eval_op/loss\n"));
}

TEST_CASE("runs are chosen by name, state and values of their configs, which can be shown") {
  const ScratchFolder folder;
  make_three(folder);
  const auto names = [&](const std::string& words) {
    const auto list = nlohmann::json::parse(run_in(folder, "stepop runs --json " + words).out);
    std::string text;
    for (const auto& run : list) text += run["run"].get<std::string>()[20];
    return text;
  };
  CHECK(names("") == "nlba");
  CHECK(names("-n lo") == "l");
  CHECK(names("--state ended") == "la");
  CHECK(names("--where optimizer/lr=0.001") == "a");
  CHECK(names("--where optimizer/lr=1.0") == "nl");
  CHECK(names("--where 'optimizer/lr>=3e-3' --where optimizer=SGD") == "nb");
  CHECK(names("--where 'optimizer/lr<3e-3'") == "a");
  CHECK(names("--where 'optimizer/class!=SGD' --state ended -n _a") == "a");
  CHECK(names("--where model=LeNet") == "nlba");
  CHECK(squeezed(run_in(folder, "stepop runs --state ended --show optimizer/lr model").out) ==
        "run state step epoch lr model last best age\n"
        "2026-11-21T12-00-00_long ended 10 0.0/20 1 LeNet 0.5 0.5 60 min ago\n"
        "2026-11-21T10-00-00_a ended 10 0.0/20 0.001 LeNet 0.5 0.5 3 h ago\n"
        "last, best: validation/eval_op/accuracy/accuracy\n");
  const auto list = nlohmann::json::parse(
      run_in(folder, "stepop runs --json --state failed --show optimizer/lr none").out);
  CHECK(list[0]["optimizer/lr"] == 0.003);
  CHECK(list[0]["none"].is_null());
  const std::string csv = run_in(folder, "stepop runs --csv -n _b --show optimizer/lr").out;
  CHECK(
      csv.starts_with("run,folder,state,step,epoch,num_epochs,metric,last,best,age_seconds,"
                      "optimizer/lr\n"));
  CHECK(csv.ends_with(",0.003\n"));
  CHECK(run_in(folder, "stepop runs -n x").out == "no run here is what is asked for\n");
  CHECK(run_in(folder, "stepop runs --state over").err ==
        "stepop: stepop runs: --state over: expected running, ended, stopped, failed, killed or "
        "unknown\n");
  CHECK(run_in(folder, "stepop runs --where optimizer/rl=1").err ==
        "stepop: stepop runs: --where: no run has the key \"optimizer/rl\": did you mean "
        "\"optimizer/lr\"?\n");
  CHECK(
      run_in(folder, "stepop runs --where optimizer/lr").err ==
      "stepop: stepop runs: --where optimizer/lr: expected a key of the config and a value, as in "
      "optimizer/lr=1e-3 or 'batch_size>=32'\n");
}

TEST_CASE("sweeps are named below the runs, and their folder lists its own") {
  const ScratchFolder folder;
  make_three(folder);
  folder.write("logs/sweeps/s/plan.yaml", "");
  make_run(folder, "logs/sweeps/s/2026-11-21T14-00-00_s_0001", "", "done", 1h);
  CHECK(run_in(folder, "stepop runs")
            .out.ends_with("\na sweep with runs of its own: logs/sweeps/s\n"));
  CHECK(run_in(folder, "stepop runs logs/sweeps").out ==
        "a sweep with runs of its own: logs/sweeps/s\n");
  CHECK(squeezed(run_in(folder, "stepop runs logs/sweeps/s").out)
            .starts_with("run state step epoch age\n2026-11-21T14-00-00_s_0001 ended "));
}

}  // namespace runs_test
}  // namespace stepop
