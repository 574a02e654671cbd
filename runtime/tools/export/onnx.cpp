#include "runtime/tools/export/onnx.h"

#include <fmt/format.h>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/tools/export/python_writer.h"

namespace stepop {

namespace {

constexpr const char* kOnnxCode = R"py(
import onnx, onnxruntime


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
names, outputs = options["inputs"], options["outputs"]
batch = dict.fromkeys(options["with_batch"], {0: "batch"})
try:
    with torch.no_grad():
        torch.onnx.export(net, examples[0][0], path, dynamo=False, input_names=names,
                          output_names=outputs, dynamic_axes=batch, opset_version=options["opset"],
                          export_params=True, do_constant_folding=options["folds"])
    if options["class_names"]:
        model = onnx.load(path)
        onnx.helper.set_model_props(model, {"class_names": options["class_names"]})
        onnx.save(model, path)
    onnx.checker.check_model(path)
except Exception as error:
    refuse(f"torch.onnx cannot write this network: {error}")
session_options = onnxruntime.SessionOptions()
session_options.log_severity_level = 3
most = 0.0
try:
    session = onnxruntime.InferenceSession(path, session_options, providers=["CPUExecutionProvider"])
    taken = {each.name for each in session.get_inputs()}
    for inputs, expected in examples if options["compares"] else ():
        found = session.run(outputs, {n: i.numpy() for n, i in zip(names, inputs) if n in taken})
        most = max(most, difference([torch.from_numpy(a) for a in found], expected, "onnxruntime"))
except Exception as error:
    refuse(f"onnxruntime refuses the file: {error}")
done({"difference": most})
)py";

nlohmann::json options_of(const ExportedNetwork& exported, const OnnxOptions& given) {
  nlohmann::json options{{"inputs", exported.inputs},
                         {"outputs", nlohmann::json::array()},
                         {"with_batch", nlohmann::json::array()},
                         {"opset", given.opset},
                         {"folds", given.folds_constants},
                         {"compares", !exported.is_random},
                         {"class_names", exported.class_names}};
  const auto add_batch = [&](const std::string& name, const std::string& shape) {
    if (shape.find("[batch") != std::string::npos) options["with_batch"].push_back(name);
  };
  for (size_t i = 0; i < exported.inputs.size(); ++i) {
    add_batch(exported.inputs[i], exported.input_shapes[i]);
  }
  const size_t count = exported.output_shapes.size();
  for (size_t i = 0; i < count; ++i) {
    const std::string name = !given.output_names.empty() ? given.output_names.at(i)
                             : count == 1                ? "output"
                                                         : fmt::format("output_{}", i);
    options["outputs"].push_back(name);
    add_batch(name, exported.output_shapes[i]);
  }
  return options;
}

}  // namespace

OnnxReport write_onnx(const ExportedNetwork& exported, const std::string& path,
                      const OnnxOptions& options, const InterruptCheck& interrupt) {
  OnnxReport report{.opset = options.opset};
  const auto accepts = [&](const nlohmann::json& answer) {
    report.most_difference = answer.at("difference").get<double>();
    if (report.most_difference <= kMostOnnxDifference) return;
    throw Error(fmt::format("onnxruntime gives other outputs: they differ by {} of the largest one",
                            short_number(report.most_difference)));
  };
  write_with_python({.what = "an ONNX file",
                     .packages = {"torch", "numpy", "onnx", "onnxruntime"},
                     .code = kOnnxCode},
                    exported, path, options_of(exported, options), interrupt, accepts);
  return report;
}

}  // namespace stepop
