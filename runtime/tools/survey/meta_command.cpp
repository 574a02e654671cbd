// `stepop meta`: writes the examples of a dataset as a folder that edflow reads.
#include <fmt/format.h>

#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/log/console.h"
#include "runtime/data/class_numbers.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/meta_writer.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/start/run_source.h"
#include "runtime/train/run/signals.h"

namespace stepop {

namespace {

int meta_command(const Arguments& arguments, const NoFlags& /*own*/) {
  const SignalGuard signals;
  RunSource source = find_source(arguments);
  check_arguments(arguments, source);
  Console console(arguments.log_level);
  const RunConfig read = read_run_config(arguments, source);
  const std::string& folder = arguments.operands[0];
  const std::string split = arguments.operands.size() > 1 ? arguments.operands[1] : "train";
  const std::string path = "datasets/" + split;
  if (!read.config.has(path)) throw UsageError("stepop meta: the config has no " + path);
  const auto dataset = datasets().build(read.config, path);
  const int64_t size = dataset->size();
  const auto progress = [&](int64_t done) {
    constexpr int64_t kEvery = 50;
    if (done % kEvery != 0) return;
    console.progress(
        fmt::format("{}: {} of {} examples", path, with_thousands(done), with_thousands(size)));
  };
  write_meta_folder(*dataset, folder, fmt::format("{} of stepop's {}", with_thousands(size), path),
                    all_class_names(read.config), throw_if_signal_arrived, progress);
  console.end_progress();
  console.info(fmt::format("{}: {}; {{class: Meta, path: {}}} reads them", folder,
                           counted(size, "example"), folder));
  return 0;
}

STEPOP_REGISTER_COMMAND(meta_command, NoFlags,
                        {.name = "meta",
                         .group = CommandGroup::kBegin,
                         .operands = "FOLDER [SPLIT] -b base.yaml",
                         .fewest = 1,
                         .most = 2,
                         .about = "write the examples of a dataset, by default train, as a folder "
                                  "with a meta.yaml, as edflow has",
                         .takes = "base project current-code log_level",
                         .example = "stepop meta digits_train train -b configs/digits.yaml",
                         .meanings = "project: the run whose datasets are read"});

}  // namespace

}  // namespace stepop
