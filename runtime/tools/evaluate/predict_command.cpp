#include <filesystem>
#include <iterator>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/evaluate/exported_classes.h"
#include "runtime/tools/start/run_command.h"

namespace stepop {

namespace fs = std::filesystem;

namespace {

/// The class of a network that a file is, by the end of its name; null for others.
const char* class_of_file(const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  if (ending == ".onnx") return "Onnx";
  if (ending == ".pt2") return "Exported";
  return ending == ".pt" ? "TorchScript" : nullptr;
}

int predict_command(const Arguments& arguments, const NoFlags& /*own*/) {
  const std::string& what = arguments.operands.front();
  Arguments start = arguments;
  start.command = nullptr;
  start.predicts = true;
  const char* const name = class_of_file(what);
  std::error_code failed;
  if (name != nullptr && !fs::exists(what, failed)) {
    throw UsageError(fmt::format("stepop predict: {}: no such file", what));
  }
  if (name != nullptr && fs::is_regular_file(what, failed)) {
    const Origin origin{Origin::kCommandLine, 0};
    const Override network[] = {{"model/class", Value(name).set_origin(origin)},
                                {"model/path", Value(what).set_origin(origin)}};
    start.overrides.insert(start.overrides.begin(), std::begin(network), std::end(network));
    const Value classes = class_names_in_file(what);
    if (classes.is_map()) start.overrides.push_back({"class_names", classes});
    if (!start.name) start.name = fs::path(what).stem().string();
  } else {
    open_run(arguments, what);
    start.project = what;
  }
  return run_command(start);
}

STEPOP_REGISTER_COMMAND(
    predict_command, NoFlags,
    {.name = "predict",
     .group = CommandGroup::kOneRun,
     .operands = "RUN | net.onnx | net.pt | net.pt2 [-b new_data.yaml] [-n NAME] [-c CHECKPOINT] "
                 "[--path/key value ...]",
     .fewest = 1,
     .most = 1,
     .about =
         "what a network, of a run or a file, makes of datasets/predict, rows without labels: an "
         "outputs.h5",
     .takes =
         "name base project checkpoint log_level current-code check graph processes allow-unknown "
         "json",
     .example = "stepop predict logs/<time>_digits -b photos.yaml -n photos",
     .meanings = "name: the name of this evaluation (default: that of the last file of -b)\n"
                 "base: YAML files with the data; each one overrides the ones before it and the "
                 "run's config"});

}  // namespace

}  // namespace stepop
