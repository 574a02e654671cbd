// `stepop tune`, by the real program.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "runtime/core/value/yaml_reader.h"
#include "tests/cli/command.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"

namespace stepop {
namespace tune_test {

namespace fs = std::filesystem;

/// The command with SleepyStep, whose best setting is known.
constexpr const char* kSlow = "'" STEPOP_BINARY_DIR "/stepop_slow'";

constexpr const char* kConfigText = R"(
iterator: Classifier
model: {class: MLP, inputs: 64, hidden: [16]}
optimizer: {class: SGD, lr: 0.1}
datasets: {train: {class: Synthetic, size: 64, shape: [1, 8, 8]}}
batch_size: 16
num_epochs: 1
num_threads: 2
n_data_processes: 0
hooks: {sleepy: {class: SleepyStep, milliseconds: 1}}
)";

/// With a temporary folder and a cache of its own.
std::string with_places(const std::string& line) {
  return "mkdir -p tmp; export TMPDIR=$PWD/tmp STEPOP_CACHE=$PWD/cache; " + line;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::set<std::string> files_of(const ScratchFolder& folder) {
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    files.insert(fs::relative(entry.path(), folder.path()).string());
  }
  return files;
}

TEST_CASE("the best setting is found, written, kept, and used by --tuned auto and a resume") {
  const ScratchFolder folder;
  folder.write("a.yaml", kConfigText);
  const auto none =
      run_in(folder, with_places(fmt::format("{} -n before -b a.yaml -t --tuned auto", kSlow)));
  CHECK(none.err == "");
  CHECK(has(none.out, "tuned: no settings are known"));

  // Which setting wins is decided by times: search_test.cpp looks at that, on times that it makes.
  const auto tuned = run_in(folder, with_places(fmt::format("{} tune -b a.yaml", kSlow)));
  CHECK(tuned.err == "");
  CHECK(tuned.exit_code == 0);
  CAPTURE(tuned.out);
  CHECK(has(tuned.out, "failed: hooks/sleepy/before_step: no such kernel"));
  const Value written = read_yaml_file(folder.path("tuned.yaml"));
  REQUIRE(written.find("num_threads") != nullptr);
  CHECK(*written.find("n_prefetch") == Value(2));  // the other one fails
  CHECK(fs::is_empty(folder.path("tmp")));
  const int64_t threads = written.find("num_threads")->as_int();
  const std::string used = fmt::format("cpu, {} thread{}", threads, threads == 1 ? "" : "s");

  // Other learning rates and lengths do not matter, another model does.
  const auto trained =
      run_in(folder, with_places(fmt::format(
                         "{} -n with -b a.yaml -t --tuned auto --optimizer/lr 0.2 --num_epochs "
                         "2 --stop_at 3 --logs with",
                         kSlow)));
  CHECK(trained.err == "");
  CHECK(has(trained.out, "tuned: settings of "));
  CHECK(has(trained.out, used));
  const std::string run = only_run(folder, "with");
  CHECK(has(run_in(folder, "cat " + run + "/configs/train_*.yaml").out,
            fmt::format("\nnum_threads: {}\n", threads)));
  CHECK(has(run_in(folder, fmt::format("{} -p {} -t --stop_at null", kSlow, run)).out, used));
  CHECK(has(run_in(folder, fmt::format("{} -p {} -t --tuned auto", kSlow, run)).err,
            "a run that is resumed keeps the settings"));
  const auto other = run_in(folder, with_places(fmt::format("{} -n other -b a.yaml -t --tuned auto "
                                                            "--model/hidden '[8]'",
                                                            kSlow)));
  CHECK(has(other.out, "tuned: no settings are known"));
}

TEST_CASE("the command that tune prints runs, whatever was set on the command line") {
  const ScratchFolder folder;
  folder.write("a b.yaml", kConfigText);
  const auto tuned =
      run_in(folder, with_places(fmt::format("{} tune -b 'a b.yaml' --time 5s -o 'tuned here.yaml' "
                                             "--num_threads 1 --optimizer/lr=0.5 --num_steps 2 "
                                             "--model/hidden '[8, 8]' --hooks '!remove'",
                                             kSlow)));
  CHECK(tuned.err == "");
  const std::string words =
      "-b 'a b.yaml' 'tuned here.yaml' --optimizer/lr=0.5 --num_steps 2 "
      "--model/hidden '[8, 8]' --hooks '!remove' ";
  const size_t begin = tuned.out.find("train with it:  ");
  REQUIRE(begin != std::string::npos);
  const std::string command = tuned.out.substr(begin + std::string("train with it:  ").size());
  CAPTURE(command);
  CHECK(has(command, words));
  const auto trained = run_in(folder, with_places(command));
  CHECK(trained.err == "");
  CHECK(trained.exit_code == 0);
  const std::string config = run_in(folder, "cat logs/*/configs/train_*.yaml").out;
  CAPTURE(config);
  CHECK(has(config, "lr: 0.5"));
  CHECK_FALSE(has(config, "sleepy"));
  const Value written = read_yaml_file(folder.path("tuned here.yaml"));
  CHECK(has(config, fmt::format("\nnum_threads: {}\n", written.find("num_threads")->as_int())));
}

TEST_CASE("a killed tune leaves no process and no file behind, and one that is asked to end ends") {
  const ScratchFolder folder;
  folder.write("a.yaml", kConfigText);
  folder.write("tmp/.keep", "");
  const std::set<std::string> before = files_of(folder);
  for (const std::string signal : {"KILL", "TERM"}) {
    CAPTURE(signal);
    // Once several processes train; then all that were started with a file of this folder are gone.
    const auto result = run_in(
        folder, with_places(fmt::format(
                    "{}\n{} tune -b a.yaml & "
                    "until_ok '[ -e tmp/stepop-tune-*/4/config.yaml ]'; kill -{} $!; wait $!; "
                    "echo status $?; "
                    "until_ok '[ -z \"$(ls tmp)\" ]'; "
                    "until_ok '! grep -lsa $PWD/tmp /proc/[0-9]*/cmdline'",
                    kUntil, kSlow, signal)));
    CHECK(has(result.out, signal == "KILL" ? "status 137" : "status 143"));
    CHECK_FALSE(has(result.err, "in vain"));
  }
  std::set<std::string> after = files_of(folder);
  for (const char* of_test : {".out", ".err", ".script"}) after.erase(of_test);
  CHECK(after == before);
}

TEST_CASE(
    "batch sizes and learning rates are tested, each with a picture, and a value sets a key") {
  const ScratchFolder folder;
  folder.write("a.yaml", kConfigText);
  const auto sizes = run_in(
      folder, with_places(fmt::format("{} tune -b a.yaml --hooks null --num_threads 1 --batch_size "
                                      "--time 20s",
                                      kSlow)));
  CHECK(sizes.err == "");
  CHECK(has(sizes.out, "\n        64  "));  // as many as there are examples
  CHECK(has(sizes.out, "the largest that was tried, 64, fits\n"));
  CHECK(has(sizes.out, "wrote batch_size.png"));
  const auto rates = run_in(
      folder,
      with_places(fmt::format("{} tune -b a.yaml --hooks null --num_threads 1 --batch_size 8 "
                              "--lr -o rates.png",
                              kSlow)));
  CHECK(rates.err == "");
  CHECK(has(rates.out, "the loss falls"));
  CHECK(has(rates.out, "wrote rates.png"));
  for (const char* picture : {"batch_size.png", "rates.png"}) {
    CHECK(read_bytes(folder.path(picture)).substr(1, 3) == "PNG");
  }
  CHECK(fs::is_empty(folder.path("tmp")));
  CHECK_FALSE(fs::exists(folder.path("logs")));
}

TEST_CASE(
    "the learning rate of an iterator without a log op is tested by what its train op returns") {
  const ScratchFolder folder;
  folder.write("a.yaml",
               "iterator: QuietIterator\nmodel: {class: MLP, inputs: 4}\noptimizer: SGD\n"
               "datasets: {train: {class: Synthetic, size: 64, shape: [1, 2, 2]}}\n"
               "batch_size: 8\nnum_steps: 8\nnum_threads: 1\nn_data_processes: 0\n");
  const auto rates = run_in(folder, with_places(fmt::format("{} tune -b a.yaml --lr", kSlow)));
  CHECK(rates.err == "");
  CHECK(has(rates.out, "wrote lr.png"));
}

TEST_CASE("a config that cannot train is reported, and mistakes on the command line") {
  const ScratchFolder folder;
  folder.write("a.yaml", kConfigText);
  const auto error = [&](const std::string& words) {
    return run_in(folder, with_places(fmt::format("{} tune {}", kSlow, words))).err;
  };
  CHECK(has(error("-b a.yaml --n_prefetch 8"),
            "stepop: stepop tune: the config as it is cannot train: "));
  // --allow-unknown holds in the processes that are measured.
  const std::string unknown = "-b a.yaml --time 2s --hooks null --batch_sise 3 --num_steps 4";
  CHECK(has(error(unknown), "unknown key \"batch_sise\": did you mean \"batch_size\"?"));
  const auto allowed =
      run_in(folder, with_places(fmt::format("{} tune {} --allow-unknown", kSlow, unknown)));
  CHECK_MESSAGE(allowed.exit_code == 0, allowed.err);
  CHECK(has(allowed.out, " --batch_sise 3 --num_steps 4 -t --allow-unknown\n"));
  const auto rates = run_in(
      folder, with_places(fmt::format("{} tune -b a.yaml --hooks null --batch_size 8 --batch_sise "
                                      "3 --lr --allow-unknown",
                                      kSlow)));
  CHECK_MESSAGE(rates.exit_code == 0, rates.err);
  CHECK(has(error("-b a.yaml --time 2"), "--time: expected a time such as 3h50m"));
  CHECK(has(error(""), "no config given: stepop tune -b base.yaml"));
  CHECK(fs::is_empty(folder.path("tmp")));
}

}  // namespace tune_test
}  // namespace stepop
