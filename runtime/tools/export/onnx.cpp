#include "runtime/tools/export/onnx.h"

#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/child_process.h"
#include "runtime/core/system/find_program.h"
#include "runtime/core/system/python.h"

namespace stepop {

namespace fs = std::filesystem;

namespace {

/// python -c SCRIPT net.pt examples.pt out.onnx OPTIONS. The last line is JSON. The exit code is 4
/// when a package is missing, with the names in the last line, and 5 after "reason: ...".
constexpr const char* kScript = R"py(
import importlib, json, sys, warnings

warnings.filterwarnings("ignore")
missing = []
for name in ("torch", "numpy", "onnx", "onnxruntime"):
    try:
        importlib.import_module(name)
    except ImportError:
        missing.append(name)
if missing:
    print(" ".join(missing))
    sys.exit(4)
import logging

import onnx, onnxruntime, torch

logging.disable(logging.WARNING)
net_path, examples_path, out, options = sys.argv[1:5]
options = json.loads(options)


def note_shapes(graph, tensors):
    """A file of TorchScript has no shapes, which some operations need to be written: runs each."""
    named = dict(zip((each.debugName() for each in graph.inputs()), tensors))
    known = dict(named)
    for node in graph.nodes():
        taken = [known[each.debugName()] for each in node.inputs()]
        kind = node.kind()
        if kind == "prim::Constant":
            made = [node.output().toIValue()]
        elif kind in ("prim::ListConstruct", "prim::TupleConstruct"):
            made = [taken]
        elif kind == "prim::CreateObject":
            made = [""]
        elif kind == "prim::GetAttr":  # its path; a parameter is an input of that name
            path = taken[0] + "." * bool(taken[0]) + node.s("name")
            made = [named.get(path, path)]
        elif kind in ("prim::ListUnpack", "prim::TupleUnpack"):
            made = taken[0]
        elif kind.startswith("aten::"):
            schema = torch._C.parse_schema(node.schema())
            run = getattr(getattr(torch.ops.aten, kind[6:]), schema.overload_name or "default")
            given = list(zip(schema.arguments, taken))
            found = run(*(v for a, v in given if not a.kwarg_only),
                        **{a.name: v for a, v in given if a.kwarg_only})
            made = found if node.outputsSize() > 1 else [found]
        else:
            made = [None] * node.outputsSize()
        for value, result in zip(node.outputs(), made):
            known[value.debugName()] = result
            if isinstance(result, torch.Tensor) and kind != "prim::Constant":
                value.inferTypeFrom(result)


def with_shapes(model, args):
    graph, params, out, module = create_graph(model, args)
    try:
        with torch.no_grad():
            note_shapes(graph, [*args, *params])
    except Exception:
        pass  # those that need no shapes are written all the same
    return graph, params, out, module


try:
    from torch.onnx._internal.torchscript_exporter import utils

    create_graph, utils._create_jit_graph = utils._create_jit_graph, with_shapes
except (ImportError, AttributeError):
    pass  # another version of torch
net = torch.jit.load(net_path, map_location="cpu").eval()
examples = torch.load(examples_path, map_location="cpu", weights_only=True)
names, outputs = options["inputs"], options["outputs"]
batch = dict.fromkeys(options["with_batch"], {0: "batch"})
try:
    with torch.no_grad():
        torch.onnx.export(net, examples[0][0], out, dynamo=False, input_names=names,
                          output_names=outputs, dynamic_axes=batch, opset_version=options["opset"],
                          export_params=True, do_constant_folding=True)
    onnx.checker.check_model(out)
except Exception as error:
    print(f"reason: torch.onnx cannot write this network: {error}")
    sys.exit(5)
session_options = onnxruntime.SessionOptions()
session_options.log_severity_level = 3
try:
    session = onnxruntime.InferenceSession(out, session_options, providers=["CPUExecutionProvider"])
    most = 0.0
    taken = {each.name for each in session.get_inputs()}
    for inputs, expected in examples if options["compares"] else ():
        found = session.run(outputs, {n: i.numpy() for n, i in zip(names, inputs) if n in taken})
        for a, b in zip(found, expected):
            if list(a.shape) != list(b.shape):
                print(f"reason: onnxruntime gives {list(a.shape)} where the network gives {list(b.shape)}")
                sys.exit(5)
            if b.numel() == 0:
                continue
            a, b = torch.from_numpy(a).double(), b.double()
            scale = b.abs().max().item() or 1.0
            most = max(most, ((a - b).abs().max() / scale).item())
except Exception as error:
    print(f"reason: onnxruntime refuses the file: {error}")
    sys.exit(5)
print(json.dumps({"difference": most if most == most else 1e300}))
)py";

constexpr int64_t kOpset = 17;  // ONNX 1.12, 2022: has layer normalization, and is widely supported
constexpr int kMissing = 4;
constexpr int kRefused = 5;

/// A temporary folder, removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = fs::temp_directory_path().string() + "/stepop-export-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      throw Error(fmt::format("{}: no folder can be made", path));
    }
    path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

c10::IValue tuple_of(const std::vector<at::Tensor>& tensors) {
  std::vector<c10::IValue> values;
  for (const auto& tensor : tensors) values.emplace_back(tensor.cpu().contiguous());
  return c10::ivalue::Tuple::create(std::move(values));
}

/// Pickles the examples for torch.load.
std::string pickled(const std::vector<ExportedNetwork::Example>& examples) {
  std::vector<c10::IValue> all;
  for (const auto& [inputs, outputs] : examples) {
    std::vector<c10::IValue> pair{tuple_of(inputs), tuple_of(outputs)};
    all.emplace_back(c10::ivalue::Tuple::create(std::move(pair)));
  }
  const auto bytes = torch::jit::pickle_save(c10::ivalue::Tuple::create(std::move(all)));
  return {bytes.begin(), bytes.end()};
}

std::string options_of(const ExportedNetwork& exported) {
  nlohmann::json options{{"inputs", exported.inputs},
                         {"outputs", nlohmann::json::array()},
                         {"with_batch", nlohmann::json::array()},
                         {"opset", kOpset},
                         {"compares", !exported.is_random}};
  const auto add_batch = [&](const std::string& name, const std::string& shape) {
    if (shape.find("[batch") != std::string::npos) options["with_batch"].push_back(name);
  };
  for (size_t i = 0; i < exported.inputs.size(); ++i) {
    add_batch(exported.inputs[i], exported.input_shapes[i]);
  }
  for (size_t i = 0; i < exported.output_shapes.size(); ++i) {
    const std::string name =
        exported.output_shapes.size() == 1 ? "output" : fmt::format("output_{}", i);
    options["outputs"].push_back(name);
    add_batch(name, exported.output_shapes[i]);
  }
  return options.dump();
}

std::string last_line_of(const std::string& text) {
  const size_t last = text.find_last_not_of(" \r\n");
  if (last == std::string::npos) return "";
  const size_t begin = text.rfind('\n', last);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, last - (begin + 1) + 1);
}

std::string trimmed_end(std::string text) {
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

std::string pip(const std::string& python, const std::string& packages) {
  return fmt::format("{} -m pip install {}", python, packages);
}

}  // namespace

OnnxReport write_onnx(const ExportedNetwork& exported, const std::string& path,
                      const InterruptCheck& interrupt) {
  const std::string python = find_python();
  if (find_program(python).empty()) {
    throw Error(
        fmt::format("{}: an ONNX file is made by Python, and there is no {}: name one by the "
                    "environment's STEPOP_PYTHON, with its packages: {}",
                    path, python, pip("python3", "torch onnx onnxruntime")));
  }
  const TemporaryFolder folder;
  write_file_atomically(folder / "net.pt", exported.file);
  write_file_atomically(folder / "examples.pt", pickled(exported.examples));
  const std::string part = path + ".part";
  std::error_code ignored;
  const ChildResult result = run_child({python, "-c", kScript, folder / "net.pt",
                                        folder / "examples.pt", part, options_of(exported)},
                                       interrupt);
  const std::string said = last_line_of(result.out);
  const auto fail = [&](const std::string& text) {
    fs::remove(part, ignored);
    return Error(fmt::format("{}: {}", path, text));
  };
  if (result.exit_code == kMissing && result.signal == 0) {
    throw fail(
        fmt::format("{} has no {}, which an ONNX file takes: {}", python, said, pip(python, said)));
  }
  if (result.exit_code == kRefused && result.signal == 0) {
    constexpr size_t kMost = 1000;
    const std::string_view mark = "reason: ";  // torch.onnx prints too
    const size_t begin = std::min(result.out.rfind(mark), result.out.size() - mark.size());
    throw fail(shortened(trimmed_end(result.out.substr(begin + mark.size())), kMost));
  }
  const auto json = nlohmann::json::parse(said, nullptr, /*allow_exceptions=*/false);
  if (result.exit_code != 0 || result.signal != 0 || !json.is_object()) {
    throw fail(fmt::format(
        "{} ended with the {} {}: {}", python, result.signal != 0 ? "signal" : "status",
        result.signal != 0 ? result.signal : result.exit_code, last_line_of(result.err)));
  }
  const OnnxReport report{.opset = kOpset, .most_difference = json.at("difference").get<double>()};
  if (!(report.most_difference <= kMostOnnxDifference)) {
    throw fail(fmt::format("onnxruntime gives other outputs: they differ by {} of the largest one",
                           short_number(report.most_difference)));
  }
  rename_into_place(part, path);
  return report;
}

}  // namespace stepop
