#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/log/facts.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/export/example_calls.h"
#include "runtime/tools/export/exported_network.h"
#include "runtime/tools/export/onnx.h"
#include "runtime/tools/export/standardization_notes.h"
#include "runtime/tools/export/torch_export.h"
#include "runtime/tools/start/checkpoint_choice.h"
#include "runtime/tools/start/run_source.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/loop/batch_norm.h"
#include "runtime/train/run/signals.h"
#include "runtime/train/session/session.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

struct ExportFlags {
  std::optional<std::string> output;
  std::optional<std::string> network;
  std::optional<std::string> opset;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  bool keeps_constants = false;

  bool are_of_onnx() const {
    return opset || keeps_constants || !input_names.empty() || !output_names.empty();
  }

  void add_to(Flags& flags) {
    flags.add({'o', "output"}, output,
              "the file to write: NAME.pt for TorchScript, NAME.pt2 for torch.export, NAME.onnx");
    flags.add("network", network, "which one, of a run with several networks");
    flags.add("opset", opset, "of .onnx: the version of its operations (default: 17)");
    flags.add("input-names", input_names, "of .onnx: in the place of the inputs' own names",
              Flag::Takes::kValues);
    flags.add("output-names", output_names,
              "of .onnx: in the place of output, or output_0 and so on", Flag::Takes::kValues);
    flags.add("no-folding", keeps_constants, "of .onnx: what depends on no input stays as it is");
  }
};

/// The file to write: from -o, or else `<network>.pt` in the run.
std::string output_of(const ExportFlags& own, const std::string& run, const std::string& network) {
  const std::string path = own.output.value_or(run + "/" + network + ".pt");
  const std::string ending = fs::path(path).extension().string();
  if (ending != ".pt" && ending != ".pt2" && ending != ".onnx") {
    throw UsageError(
        fmt::format("-o {}: expected a name that ends with .pt, for TorchScript, with "
                    ".pt2, for torch.export, or with .onnx",
                    path));
  }
  if (ending != ".onnx" && own.are_of_onnx()) {
    throw UsageError(fmt::format(
        "-o {}: --opset, --input-names, --output-names and --no-folding are of an .onnx file",
        path));
  }
  const fs::path folder = fs::absolute(path).parent_path();
  if (!fs::is_directory(folder)) {
    throw UsageError(fmt::format("-o {}: there is no folder {}", path, folder.string()));
  }
  if (fs::is_directory(path)) throw UsageError(fmt::format("-o {}: it is a folder", path));
  return path;
}

OnnxOptions onnx_options(const ExportFlags& own) {
  OnnxOptions options{.folds_constants = !own.keeps_constants, .output_names = own.output_names};
  if (!own.opset) return options;
  const std::string& text = *own.opset;
  constexpr int64_t kLeast = 9;  // both of torch.onnx, without its exporter of torch.export
  constexpr int64_t kMost = 20;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), options.opset);
  if (failed == std::errc() && end == text.data() + text.size() && options.opset >= kLeast &&
      options.opset <= kMost) {
    return options;
  }
  throw UsageError(fmt::format("--opset {}: expected a number from {} to {}", text, kLeast, kMost));
}

/// Gives the network's inputs the names of --input-names, and checks both flags of names.
void take_names(const ExportFlags& own, ExportedNetwork& exported) {
  const auto check = [](const char* flag, const std::vector<std::string>& names, size_t count) {
    for (const auto& name : names) {
      if (name.find(',') == std::string::npos) continue;
      throw UsageError(
          fmt::format("{} {}: expected names with spaces between them, {} a b", flag, name, flag));
    }
    if (names.empty() || names.size() == count) return;
    throw UsageError(fmt::format("{}: expected {}, found {}", flag,
                                 counted(static_cast<int64_t>(count), "name"), names.size()));
  };
  check("--input-names", own.input_names, exported.inputs.size());
  check("--output-names", own.output_names, exported.output_shapes.size());
  if (!own.input_names.empty()) exported.inputs = own.input_names;
}

/// The selected network.
std::string network_of(const ExportFlags& own, const Networks& networks) {
  const std::vector<std::string> names = networks.names();
  const std::string all = fmt::format("{}", fmt::join(names, ", "));
  if (names.empty()) throw UsageError("stepop export: the config of the run has no network");
  if (!own.network) {
    if (names.size() == 1) return names.front();
    throw UsageError(fmt::format(
        "stepop export: the run has several networks: name one with --network: {}", all));
  }
  if (std::ranges::find(names, *own.network) != names.end()) return *own.network;
  const auto near = nearest_names(*own.network, names, 1);
  throw UsageError(fmt::format("--network {}: the run has no such network; there are: {}{}",
                               *own.network, all,
                               near.empty() ? "" : "; did you mean " + near[0] + "?"));
}

/// A session of the run with the checkpoint's weights.
class RunSession {
 public:
  RunSession(const Config& config, const ChosenCheckpoint& chosen, bool train, bool allow_unknown)
      : chosen_(chosen), session_(config, train, /*debug=*/false, allow_unknown) {
    restore();
    session_.initialize();
  }

  void restore() { session_.restore_for_evaluation(chosen_.checkpoint, chosen_.path); }
  Session& operator*() { return session_; }
  Session* operator->() { return &session_; }

 private:
  const ChosenCheckpoint& chosen_;
  Session session_;
};

void print_shapes(const char* title, const std::vector<std::string>& names,
                  const std::vector<std::string>& shapes) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    fmt::print("{:<9} {}{}\n", title, i < names.size() ? names[i] + ": " : "", shapes[i]);
  }
}

/// ` (ema)` for averages; otherwise empty.
std::string kind_of_weights(const Config& config, const Checkpoint& checkpoint,
                            const std::string& network) {
  const auto kind = own_key<std::string>(config, "eval_weights");
  if (kind == "model") return "";
  const std::string prefix = fmt::format("{}_{}.", kind, network);
  const bool is_averaged = std::ranges::any_of(
      checkpoint.tensors, [&](const auto& entry) { return entry.first.starts_with(prefix); });
  return is_averaged ? fmt::format(" ({})", kind)
                     : fmt::format(" (its own: the checkpoint has no {} of it)", kind);
}

/// The Python code that runs the file.
std::string how_to_load(const std::string& path, const ExportedNetwork& exported) {
  const std::string inputs = fmt::format("{}", fmt::join(exported.inputs, ", "));
  if (path.ends_with(".pt")) {
    return fmt::format("torch.jit.load(\"{}\")({})", path, inputs);
  }
  if (path.ends_with(".pt2")) {
    return fmt::format("torch.export.load(\"{}\").module()({})", path, inputs);
  }
  std::vector<std::string> given;
  for (const auto& name : exported.inputs) given.push_back(fmt::format("\"{0}\": {0}", name));
  return fmt::format("onnxruntime.InferenceSession(\"{}\").run(None, {{{}}})", path,
                     fmt::join(given, ", "));
}

/// The config to build the network by: the run's own with the changes of the command line, on the
/// CPU unless they name another device.
Arguments arguments_of_run(const Arguments& given) {
  Arguments arguments = given;
  arguments.project = given.operands.front();
  const bool has_device = std::ranges::any_of(
      given.overrides, [](const Override& each) { return each.path == "device"; });
  // Tensors that the network makes in a trace keep the trace's device.
  if (!has_device) arguments.overrides.push_back({"device", Value("cpu")});
  return arguments;
}

/// The run's config with the files of -b over it.
RunSource source_of_run(const Arguments& arguments) {
  Arguments of_run = arguments;
  of_run.base.clear();
  RunSource source = find_source(of_run);
  source.base.insert(source.base.end(), arguments.base.begin(), arguments.base.end());
  return source;
}

size_t place_of(const std::string& name, const Networks& networks) {
  const auto names = networks.names();
  return static_cast<size_t>(std::ranges::find(names, name) - names.begin());
}

/// Makes the network's program; an error says that `path` is not written.
ExportedNetwork make_program(const Context& context, const std::string& name,
                             const std::vector<NetworkInputs>& calls, const std::string& path) {
  const Networks& networks = context.networks;
  const Value* classes = context.config.peek("class_names");
  try {
    return export_network(*networks.get(name), networks.class_names().at(place_of(name, networks)),
                          calls, classes == nullptr ? "" : to_json(*classes));
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(
        fmt::format("{} is not written: the network \"{}\": {}", path, name, error_text(error)));
  }
}

/// Writes the program in the format of the file's name, and reports how it was compared.
void write_program(ExportedNetwork& exported, const std::string& path, const OnnxOptions& onnx,
                   Console& console) {
  const auto compared = [&](const char* by, double most_difference) {
    return exported.is_random ? "not compared: its random numbers are others"
                              : fmt::format("{} on the same examples: largest difference {}", by,
                                            short_number(most_difference));
  };
  if (path.ends_with(".pt")) {
    write_file_atomically(path, exported.file);
  } else if (path.ends_with(".pt2")) {
    const double difference = write_torch_export(exported, path, throw_if_signal_arrived);
    console.info("export    " + compared("the program", difference));
  } else {
    const OnnxReport report = write_onnx(exported, path, onnx, throw_if_signal_arrived);
    console.info(fmt::format("onnx      opset {}, {}", report.opset,
                             compared("onnxruntime", report.most_difference)));
    exported.notes.emplace_back(exported.has_free_batch
                                    ? "the sizes above are part of the file, without the number of "
                                      "examples: resize images first"
                                    : "the sizes above are part of the file");
  }
}

int export_command(const Arguments& given, const ExportFlags& own) {
  if (given.json) begin_facts();
  const std::string run = open_run(given, given.operands.front()).root();
  const OnnxOptions onnx = onnx_options(own);
  const SignalGuard signals;
  const InterruptScope interrupt(throw_if_signal_arrived);
  const Arguments arguments = arguments_of_run(given);
  RunSource source = source_of_run(arguments);
  Console console(given.log_level);
  const auto chosen = choose_checkpoint(arguments, source, console);
  if (!chosen) throw UsageError(fmt::format("{}: the run has no checkpoint to export yet", run));
  const RunConfig code = read_run_config(arguments, source);
  if (!code.code_note.empty()) console.info(code.code_note);

  std::optional<RunSession> session;
  session.emplace(code.config, *chosen, /*train=*/false, given.allow_unknown);
  const std::string name = network_of(own, (*session)->context().networks);
  const std::string path = output_of(own, run, name);
  std::vector<NetworkInputs> calls = example_calls(**session, name);
  const char* example = "of an evaluation";
  if (calls.empty()) {
    // Only a training calls this network.
    session.emplace(code.config, *chosen, /*train=*/true, given.allow_unknown);
    calls = example_calls(**session, name);
    session->restore();
    example = "of a training";
  }
  const Context& context = (*session)->context();
  measure_batch_norm((*session)->iterator(), context, (*session)->position(),
                     throw_if_signal_arrived);
  const AveragesGuard weights = context.networks.evaluation_weights();
  console.info(fmt::format("network   {}",
                           context.networks.descriptions().at(place_of(name, context.networks))));
  console.info(fmt::format("weights   {}{}", chosen->path,
                           kind_of_weights(context.config, chosen->checkpoint, name)));
  ExportedNetwork exported = make_program(context, name, calls, path);
  throw_if_signal_arrived();
  take_names(own, exported);
  print_shapes("input", exported.inputs, exported.input_shapes);
  print_shapes("output", {}, exported.output_shapes);
  console.info(fmt::format("compared  with the network, on examples {}: {}; largest difference {}",
                           example, fmt::join(exported.compared, ", "),
                           short_number(exported.most_difference)));
  write_program(exported, path, onnx, console);
  if (!exported.class_names.empty()) console.info("classes   in the file: " + exported.class_names);
  for (const auto& text : standardization_notes(*context.config.root().peek())) {
    exported.notes.push_back(text);
  }
  for (const auto& text : exported.notes) console.info("note      " + text);
  for (const auto& text : exported.warnings) console.warn(text);
  console.info(fmt::format("{} ({}): {}", path, size_text(static_cast<double>(fs::file_size(path))),
                           how_to_load(path, exported)));
  say_fact("file", path);
  return 0;
}

STEPOP_REGISTER_COMMAND(
    export_command, ExportFlags,
    {.name = "export",
     .group = CommandGroup::kOneRun,
     .operands = "RUN [-c CHECKPOINT] [--network NAME] [-o net.pt | net.pt2 | net.onnx] "
                 "[--path/key value ...]",
     .fewest = 1,
     .most = 1,
     .about = "write the network of a run for Python and other programs, checked on its data",
     .takes = "base project checkpoint current-code log_level allow-unknown json",
     .example = "stepop export logs/<time>_digits -c best -o net.pt"});

}  // namespace

}  // namespace stepop
