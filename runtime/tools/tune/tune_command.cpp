#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/log/console.h"
#include "runtime/core/log/console_sink.h"
#include "runtime/core/log/facts.h"
#include "runtime/core/programs/child.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/temporary_folder.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/start/kept_settings.h"
#include "runtime/tools/start/processes.h"
#include "runtime/tools/start/run_source.h"
#include "runtime/tools/tune/batch_sizes.h"
#include "runtime/tools/tune/learning_rates.h"
#include "runtime/tools/tune/measured_training.h"
#include "runtime/tools/tune/trainee.h"
#include "runtime/tools/tune/tune_steps.h"
#include "runtime/train/distributed/place.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/run/signals.h"
#include "runtime/train/when/duration.h"

namespace stepop {
namespace {

struct TuneFlags {
  std::optional<std::string> time_limit;
  bool precision = false;
  bool batch_size = false;
  bool lr = false;
  std::optional<std::string> output;

  void add_to(Flags& flags) {
    using enum Flag::Takes;
    flags.add("time", time_limit,
              "how long it may take: 2m (default: a minute, longer for slow steps)");
    flags.add("precision", precision, "also try bfloat16, which changes results", kUnlessValue);
    flags.add("batch_size", batch_size,
              "speed and memory by batch size instead, as a table and a picture", kUnlessValue);
    flags.add("lr", lr, "a test of learning rates instead, as a picture, and a suggestion",
              kUnlessValue);
    flags.add({'o', "output"}, output,
              "the file to write (default: tuned.yaml, batch_size.png or lr.png)");
  }
};

constexpr const char* kAllowUnknown = "--allow-unknown";
constexpr const char* kTunedFile = "tuned.yaml";
constexpr const char* kBatchSizeFile = "batch_size.png";
constexpr const char* kRatesFile = "lr.png";
constexpr int kBarColumns = 24;

/// Waits for the end of this process. Trainings that die at the same moment may still write.
constexpr const char* kSweep =
    "while [ -e \"/proc/$2/exe\" ]; do sleep 1; done; for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "
    "\"$1\"; "
    "[ -e \"$1\" ] || exit 0; sleep 0.2; done";

/// A folder in $TMPDIR or /tmp for what measured trainings read and write. It is removed with this
/// object, or by a shell when this process is killed.
class TuneFolder {
 public:
  /// Throws Error when the folder cannot be made.
  TuneFolder() : folder_("stepop-tune") {
    shell_ = start_beside({"/bin/sh", "-c", kSweep, "sh", path(), std::to_string(::getpid())},
                          "/dev/null");
  }
  ~TuneFolder() {
    folder_.remove();  // before the shell, which removes it in case of a kill
    ::kill(-shell_->pid(), SIGKILL);
    while (!shell_->has_ended()) ::usleep(1000);
  }
  TuneFolder(const TuneFolder&) = delete;
  TuneFolder& operator=(const TuneFolder&) = delete;

  const std::string& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Child> shell_;
};

/// The words of a training with the same config.
Arguments training_of(const Arguments& arguments) {
  Arguments training = arguments;
  training.command = nullptr;
  training.train = true;
  return training;
}

/// A process that `stepop tune` started.
int be_measured(const Arguments& arguments, const std::string& mode) {
  const Arguments training = training_of(arguments);
  RunSource source = find_source(training);
  const RunConfig run = read_run_config(training, source);
  const auto world = World::join(read_place(), {});
  const std::string folder = std::filesystem::path(arguments.base.at(0)).parent_path().string();
  if (mode == kTestRates) {
    run_rate_test(run.config, arguments.allow_unknown, *world, folder,
                  arguments.checkpoint.value_or(""));
  }
  if (mode != kMeasureSteps) throw Error(fmt::format("{}={}: no such mode", kTuneVariable, mode));
  run_measured_training(run.config, arguments.allow_unknown, *world, folder);
}

/// The config that the command line names.
struct TuneSource {
  std::string files;  ///< As words of a shell: `-b configs/digits.yaml`.
  Value raw;          ///< The config with its paths as written.
  Value config;       ///< The config with absolute paths.
};

TuneSource read_tune_source(const Arguments& arguments) {
  const Arguments training = training_of(arguments);
  RunSource source = find_source(training);
  if (source.base.empty()) {
    throw UsageError("no config given: stepop tune -b base.yaml" + keys_taken(arguments));
  }
  TuneSource result;
  for (const auto& file : source.base) {
    result.files += (result.files.empty() ? "-b " : " ") + shell_word(file);
  }
  result.raw = source.resolve(arguments.overrides).root;
  result.config = *read_run_config(training, source).config.peek();
  return result;
}

/// The keys that the command line sets, as words of a shell, without the keys in `tuned`: the
/// command line would win over the file.
std::string typed_overrides(const Arguments& arguments, const OrderedMap<Value>& tuned) {
  std::string words;
  for (const auto& [path, typed] : arguments.typed_overrides) {
    if (!tuned.contains(path)) words += " " + typed;
  }
  return words;
}

/// In seconds; 0 without a limit.
double read_time_limit(const TuneFlags& own) {
  if (!own.time_limit) return 0;
  Value::Map flags;
  flags.set("--time", Value(*own.time_limit).set_origin({Origin::kCommandLine, 0}));
  return read_seconds(Config(Value(std::move(flags))), "--time");
}

/// Keeps the settings for --tuned auto. A folder that cannot be written is no reason to fail.
void keep(const TuneSource& source, const std::string& text, Console& console) {
  try {
    const std::string file = kept_settings_file(source.raw);
    make_folders(std::filesystem::path(file).parent_path().string());
    write_file_atomically(file, text);
  } catch (const Error& error) {
    console.warn(fmt::format("not kept for --tuned auto: {}", error.what()));
  }
}

/// What `measure` returns; a training that fails is an error that begins with `what`.
template <class Measure>
auto reporting(const std::string& what, const Measure& measure, Console& console) {
  try {
    auto result = measure();
    console.end_progress();
    return result;
  } catch (const CandidateFailed& failed) {
    throw Error(fmt::format("stepop tune{}: {}", what, failed.what()));
  }
}

int tune_settings(const Arguments& arguments, const TuneFlags& own, const TuneSource& source,
                  const TuneOptions& options, const TraineeOptions& trainees, Console& console) {
  const TunedSteps tuned = reporting(
      ": the config as it is cannot train", [&] { return tune_steps(options, trainees); }, console);
  console.info(tuned.table());
  const std::string file = own.output.value_or(kTunedFile);
  const std::string text = tuned.file_text(source.files + typed_overrides(arguments, {}));
  write_file_atomically(file, text);
  if (!tuned.result.winner.changes_results) keep(source, text, console);
  console.info(fmt::format(
      "wrote {}; train with it:  {} {} {}{} -t{}{}", file, shell_word(program_name()), source.files,
      shell_word(file), typed_overrides(arguments, tuned.settings()),
      arguments.allow_unknown ? " " : "", arguments.allow_unknown ? kAllowUnknown : ""));
  say_fact("file", file);
  return 0;
}

int tune_batches(const TuneFlags& own, const TuneOptions& options, const TraineeOptions& trainees,
                 Console& console) {
  const std::vector<BatchSizeRow> rows = reporting(
      " --batch_size", [&] { return tune_batch_size(options, trainees); }, console);
  console.info(batch_size_table(rows));
  const std::string file = own.output.value_or(kBatchSizeFile);
  write_file_atomically(file, batch_size_picture(rows));
  console.info(fmt::format("wrote {}", file));
  say_fact("file", file);
  return 0;
}

int tune_rates(const TuneFlags& own, const TuneOptions& options, const TraineeOptions& trainees,
               Console& console) {
  const std::vector<RatePoint> points = reporting(
      " --lr", [&] { return test_rates(options, trainees); }, console);
  const RateSuggestion suggestion = suggest_rate(points);
  const std::string file = own.output.value_or(kRatesFile);
  write_file_atomically(file, rate_picture(points, suggestion));
  console.info(suggestion.reason);
  if (suggestion.rate) console.info("learning rate: " + short_number(*suggestion.rate));
  console.info(fmt::format("wrote {}", file));
  say_fact("file", file);
  return 0;
}

int tune_command(const Arguments& arguments, const TuneFlags& own) {
  const auto begin = std::chrono::steady_clock::now();
  if (const auto mode = environment_variable(kTuneVariable)) return be_measured(arguments, *mode);
  if (own.batch_size && own.lr) {
    throw UsageError("stepop tune: --batch_size and --lr: give one");
  }
  if (arguments.checkpoint && !own.lr) {
    throw UsageError("stepop tune: -c gives the weights that --lr begins with: give both");
  }
  if (arguments.project) {
    throw UsageError(
        "stepop tune: -p: give the config of the run, -b RUN/configs/train_<time>.yaml");
  }
  if (own.time_limit && own.lr) {
    throw UsageError("stepop tune: --time: --lr takes 320 steps, or fewer; leave --time out");
  }
  if (arguments.json) begin_facts();
  const double time_limit = read_time_limit(own);
  const SignalGuard signals;
  const TuneSource source = read_tune_source(arguments);
  const TuneFolder folder;
  TraineeOptions trainees{.folder = folder.path(),
                          .words = {"tune"},
                          .places = places_of_processes,
                          .interrupt = throw_if_signal_arrived};
  if (arguments.checkpoint)
    trainees.words.insert(trainees.words.end(), {"-c", *arguments.checkpoint});
  if (arguments.allow_unknown) trainees.words.emplace_back(kAllowUnknown);
  Console console(arguments.log_level);
  const TuneOptions options{
      .config = source.config,
      .time_limit = time_limit,
      .begin = begin,
      .precision = own.precision,
      .processes = World::can_join(),
      .progress = [&](const std::string& what, double share) {
        console.progress(
            fmt::format("{} {:3.0f} %  {}", progress_bar(share, kBarColumns), 100 * share, what));
      }};
  if (own.lr) return tune_rates(own, options, trainees, console);
  if (own.batch_size) return tune_batches(own, options, trainees, console);
  return tune_settings(arguments, own, source, options, trainees, console);
}

STEPOP_REGISTER_COMMAND(
    tune_command, TuneFlags,
    {.name = "tune",
     .group = CommandGroup::kBegin,
     .operands = "-b base.yaml [--path/key value ...] [--time 2m] [--batch_size | --lr]",
     .fewest = 0,
     .most = 0,
     .about = "measure training steps with other threads, oneDNN, loaders, ...; writes tuned.yaml "
              "for -b",
     .takes = "base checkpoint project log_level allow-unknown json",
     .example = "stepop tune -b configs/digits.yaml --time 2m\nstepop tune -b configs/digits.yaml "
                "--lr -o lr.png",
     .meanings = "checkpoint: with --lr: the weights to begin with"
                 "\nproject:"});

}  // namespace

}  // namespace stepop
