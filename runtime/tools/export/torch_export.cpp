#include "runtime/tools/export/torch_export.h"

#include <fmt/format.h>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/tools/export/python_writer.h"

namespace stepop {

namespace {

constexpr const char* kTorchExportCode = R"py(
import operator

try:
    from torch._export import converter
    from torch.export.graph_signature import InputKind
except ImportError:
    refuse(f"torch {torch.__version__} of this Python cannot convert TorchScript; 2.13 can")


class OnSizes:
    """Arithmetic on sizes in the place of an operation that would make numbers of them."""

    def __init__(self, run, overload):
        self.run, self._schema, self.__name__ = run, overload._schema, run.__name__

    def __call__(self, *values):
        return self.run(*values)


def find_overload(node):
    overload = get_op_overload(node)
    name, _, kind = overload.__name__.rpartition(".")
    plain = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg}.get(name)
    return OnSizes(plain, overload) if plain and kind == "int" else overload


get_op_overload, converter.get_op_overload = converter.get_op_overload, find_overload


def outputs_of(result):
    return [result] if isinstance(result, torch.Tensor) else list(result)


try:
    with torch.no_grad():
        program = converter.TS2EPConverter(net, examples[0][0]).convert()
except Exception as error:
    refuse(f"PyTorch cannot convert this network: {str(error).strip()}")
parameters = {name for name, _ in net.named_parameters()}
for spec in program.graph_signature.input_specs:  # the converter makes all of them buffers
    if spec.kind == InputKind.BUFFER and spec.target in parameters:
        spec.kind, spec.persistent = InputKind.PARAMETER, None
        tensor = program.state_dict[spec.target]
        program.state_dict[spec.target] = torch.nn.Parameter(tensor.detach(), tensor.is_floating_point())
with open(path, "wb") as file:
    names = options["class_names"]
    torch.export.save(program, file, extra_files={"class_names.json": names} if names else None)
with open(path, "rb") as file:
    loaded = torch.export.load(file).module()
with torch.no_grad():
    compared = list(examples)
    if options["free_batch"]:
        larger = tuple(torch.cat([each, each[:1]]) for each in examples[0][0])
        compared.append((larger, outputs_of(net(*larger))))
    most = 0.0
    for inputs, expected in compared if options["compares"] else ():
        try:
            found = outputs_of(loaded(*inputs))
        except Exception as error:
            refuse(f"the program refuses {[list(each.shape) for each in inputs]}: {str(error).strip()}")
        most = max(most, difference(found, expected, "the program"))
done({"difference": most})
)py";

}  // namespace

double write_torch_export(const ExportedNetwork& exported, const std::string& path,
                          const InterruptCheck& interrupt) {
  double most_difference = 0;
  const auto accepts = [&](const nlohmann::json& answer) {
    most_difference = answer.at("difference").get<double>();
    if (most_difference <= kMostDifference) return;
    throw Error(fmt::format("the program gives other outputs: they differ by {} of the largest one",
                            short_number(most_difference)));
  };
  write_with_python({.what = "a program of torch.export",
                     .packages = {"torch", "numpy"},
                     .code = kTorchExportCode},
                    exported, path,
                    {{"free_batch", exported.has_free_batch},
                     {"compares", !exported.is_random},
                     {"class_names", exported.class_names}},
                    interrupt, accepts);
  return most_difference;
}

}  // namespace stepop
