// `stepop data`: describes the examples of a config's datasets, and finds bad examples.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/usable_processors.h"
#include "runtime/data/class_numbers.h"
#include "runtime/data/example_random.h"
#include "runtime/data/notice.h"
#include "runtime/data/stream_dataset.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/start/run_source.h"
#include "runtime/tools/survey/survey.h"
#include "runtime/tools/survey/survey_page.h"
#include "runtime/tools/survey/survey_text.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

struct DataFlags {
  std::optional<std::string> output;
  std::optional<std::string> html;
  std::optional<std::string> examples;

  void add_to(Flags& flags) {
    flags.add({'o', "output"}, output, "a picture of examples: NAME.png");
    flags.add("html", html, "a page to browse examples and statistics: NAME.html");
    flags.add("examples", examples,
              "how many to read, evenly spread, or all (default: all, of more than 10 million a "
              "million)");
  }
};

/// From larger datasets, only kSample examples are read, unless --examples gives a number.
constexpr int64_t kMostReadWhole = 10'000'000;
constexpr int64_t kSample = 1'000'000;
/// For a stream that does not know its size.
constexpr int64_t kFirstOfStream = 1000;
/// The number of a dataset's examples on a page, and in a picture.
constexpr int64_t kShown = 240;

void check_files(const DataFlags& own) {
  const auto check_output = [](const std::optional<std::string>& path, const char* flag,
                               const char* ending) {
    if (!path) return;
    if (fs::path(*path).extension() != ending) {
      throw UsageError(
          fmt::format("{} {}: expected a name that ends with {}", flag, *path, ending));
    }
    const fs::path folder = fs::absolute(*path).parent_path();
    if (!fs::is_directory(folder)) {
      throw UsageError(fmt::format("{} {}: there is no folder {}", flag, *path, folder.string()));
    }
  };
  check_output(own.output, "-o", ".png");
  check_output(own.html, "--html", ".html");
}

/// Takes words after `-b config.yaml` that are no files: `stepop data -b config.yaml train`.
void take_splits_from_base(Arguments& arguments) {
  if (arguments.project && arguments.operands == std::vector{*arguments.project}) {
    arguments.operands.clear();
  }
  std::vector<std::string> splits;
  while (arguments.base.size() > 1) {
    const std::string& word = arguments.base.back();
    std::error_code ignored;
    if (word.find_first_of("./") != std::string::npos || fs::is_regular_file(word, ignored)) break;
    splits.insert(splits.begin(), word);
    arguments.base.pop_back();
  }
  arguments.operands.insert(arguments.operands.end(), splits.begin(), splits.end());
}

std::vector<std::string> splits_of(const Arguments& arguments, const Config& config) {
  const Config part = config.at("datasets");
  std::vector<std::string> all;
  for (const auto& name : part.keys()) {
    if (part.has(name)) all.push_back(name);
  }
  if (all.empty()) throw UsageError("stepop data: the config has no dataset");
  if (arguments.operands.empty()) return all;
  for (const auto& name : arguments.operands) {
    if (std::ranges::find(all, name) != all.end()) continue;
    const auto near = nearest_names(name, all, 1);
    throw UsageError(fmt::format("stepop data: the config has no datasets/{}; there are: {}{}",
                                 name, list_text(all),
                                 near.empty() ? "" : "; did you mean " + near[0] + "?"));
  }
  return arguments.operands;
}

/// Finds misspelt keys of the datasets, as in a run; all other keys are not checked.
void check_dataset_keys(const Config& config, const std::vector<std::string>& splits,
                        bool allow_unknown, Console& console) {
  for (const auto& key : config.keys()) {
    if (key != "datasets") config.claim(key);
  }
  for (const auto& split : config.at("datasets").keys()) {
    if (std::ranges::find(splits, split) == splits.end()) config.claim("datasets/" + split);
  }
  const std::string unknown = config.unknown_keys();
  if (unknown.empty()) return;
  if (!allow_unknown) throw UsageError(unknown);
  console.warn(unknown);
}

/// The number of examples to read; a stream's size may be unknown.
int64_t examples_to_read(const DataFlags& own, std::optional<int64_t> known) {
  if (!known && (!own.examples || *own.examples == "all")) {
    if (!own.examples) return kFirstOfStream;
    throw UsageError(
        "--examples all: the stream does not know how many it has: give a number, or \"examples\" "
        "in its config");
  }
  const int64_t size = known.value_or(std::numeric_limits<int64_t>::max());
  if (!own.examples) return size > kMostReadWhole ? kSample : size;
  if (*own.examples == "all") return size;
  const std::string& text = *own.examples;
  int64_t count = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failed != std::errc() || end != text.data() + text.size() || count < 1) {
    throw UsageError(fmt::format("--examples {}: expected a number of 1 or more, or all", text));
  }
  return std::min(count, size);
}

std::string class_of(const Config& config, const std::string& path) {
  const Value* value = config.peek(path);
  if (value != nullptr && value->is_map()) value = value->find("class");
  return value != nullptr && value->is_text() ? value->as_text() : "?";
}

/// `sheet.png`; for several datasets, `sheet_train.png`.
std::string sheet_path(const std::string& path, const std::string& split, bool is_one) {
  if (is_one) return path;
  const fs::path file(path);
  return (file.parent_path() / fmt::format("{}_{}.png", file.stem().string(), split)).string();
}

void write_page(const DataFlags& own, const RunSource& source,
                const std::vector<TitledSurvey>& surveys, Console& console) {
  const std::string title = source.base.empty() ? "data" : fs::path(source.base.back()).filename();
  write_file_atomically(*own.html, survey_page(surveys, title));
  console.info(fmt::format("page      {} ({})", *own.html,
                           size_text(static_cast<double>(fs::file_size(*own.html)))));
}

/// Reads a split's examples; shows how far it is. Examples that throw are in the survey.
TitledSurvey survey_split(Splits& splits, const std::string& name, const Config& config,
                          uint64_t seed, const DataFlags& own, Console& console) {
  const Dataset& dataset = splits.dataset(name);
  const std::string path = "datasets/" + name;
  SurveyOptions options;
  options.threads = usable_processors();
  const auto* stream = dynamic_cast<const StreamDataset*>(&dataset);
  const auto size = stream != nullptr ? stream->examples() : std::optional(dataset.size());
  options.examples = examples_to_read(own, size);
  options.is_in_order = stream != nullptr;
  options.shown = kShown;
  options.order_seed = evaluation_seed(seed, name);
  options.interrupt = throw_if_signal_arrived;
  options.progress = [&](int64_t done, int64_t bad) {
    console.progress(fmt::format("{}: {} of {} examples{}", path, with_thousands(done),
                                 with_thousands(options.examples),
                                 bad == 0 ? "" : fmt::format(", {} bad", with_thousands(bad))));
  };
  TitledSurvey titled{fmt::format("{}: {}", path, class_of(config, path)),
                      survey_dataset(dataset, options)};
  if (size) titled.survey.size = *size;
  for (auto& [key, summary] : titled.survey.keys) summary.set_names(class_names_of(config, key));
  console.end_progress();
  return titled;
}

/// Writes the picture of a split's examples to `file`, if they have images.
void write_sheet(const Survey& survey, const std::string& split, const std::string& file,
                 Console& console) {
  const std::string sheet = survey_sheet(survey);
  if (!sheet.empty()) write_file_atomically(file, sheet);
  console.info(sheet.empty() ? fmt::format("datasets/{} has no image to show", split)
                             : fmt::format("picture   {}", file));
}

int data_command(const Arguments& given, const DataFlags& own) {
  Arguments arguments = given;
  take_splits_from_base(arguments);
  check_files(own);
  const SignalGuard signals;
  const InterruptScope interrupt(throw_if_signal_arrived);
  RunSource source = find_source(arguments);
  check_arguments(arguments, source);
  Console console(arguments.log_level);
  const RunConfig read = read_run_config(arguments, source);
  if (!read.code_note.empty()) console.info(read.code_note);
  const Config& config = read.config;
  const auto seed = static_cast<uint64_t>(own_key<int64_t>(config, "seed"));
  Splits splits(config, seed, c10::kCPU);
  const auto names = splits_of(arguments, config);
  for (const auto& name : names) splits.dataset(name);
  check_dataset_keys(config, names, arguments.allow_unknown, console);
  const Notices notices = split_notices(splits.notices());
  if (!notices.infos.empty()) console.info(notices.infos);
  if (!notices.warnings.empty()) console.warn(notices.warnings);

  std::vector<TitledSurvey> surveys;
  bool has_bad = false;
  for (const auto& name : names) {
    TitledSurvey titled = survey_split(splits, name, config, seed, own, console);
    const auto width = static_cast<size_t>(console.width());
    console.info(fmt::format("{}{}", surveys.empty() ? "" : "\n",
                             survey_text(titled.survey, titled.title, width)));
    has_bad = has_bad || titled.survey.bad_count > 0;
    if (titled.survey.stopped_by) std::rethrow_exception(titled.survey.stopped_by);
    if (own.output) {
      const std::string file = sheet_path(*own.output, name, names.size() == 1);
      write_sheet(titled.survey, name, file, console);
    }
    surveys.push_back(std::move(titled));
  }
  if (own.html) write_page(own, source, surveys, console);
  return has_bad ? 1 : 0;
}

STEPOP_REGISTER_COMMAND(
    data_command, DataFlags,
    {.name = "data",
     .group = CommandGroup::kBegin,
     .operands = "-b base.yaml [SPLIT ...] [--html data.html] [-o data.png] [--examples N]",
     .fewest = 0,
     .most = 100,
     .about = "look at datasets: types, shapes, ranges, time; reads every example and lists the "
              "bad ones",
     .takes = "base project current-code log_level allow-unknown",
     .example = "stepop data -b configs/digits.yaml train --html data.html",
     .meanings = "project: the run whose datasets are read"});

}  // namespace

}  // namespace stepop
