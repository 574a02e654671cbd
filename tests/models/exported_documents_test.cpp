// Documents in a file of torch.export that are nested without end, packed to fill the memory or
// damaged are refused in a sentence.
#include <doctest/doctest.h>
#include <torch/nn/module.h>

#include <string>

#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/test_run.h"

namespace stepop {
namespace exported_documents_test {

/// Writes files into a folder, each with another models/model.json: graphs that are N deep in each
/// other, NAME.pt2 of `nested`, spaces that shrink to a thousandth, and a document without a part.
constexpr const char* kFiles = R"(import json, sys, zipfile
sys.path.insert(0, sys.argv[1])
import torch
from torch import nn
from stepop.eval.export import export_both, write_programs

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)

    def forward(self, x):
        with torch.no_grad(): y = x * 2
        return self.a(x) + y.sum()

folder = sys.argv[2] + "/"
programs, _ = export_both(Net(), [torch.ones(2, 3)])
write_programs(programs, folder + "whole.pt2")
old = zipfile.ZipFile(folder + "whole.pt2")
model = next(name for name in old.namelist() if name.endswith("/models/model.json"))

def write(name, document, packing=zipfile.ZIP_STORED):
    with zipfile.ZipFile(f"{folder}{name}.pt2", "w") as new:
        for info in old.infolist():
            is_model = info.filename == model
            new.writestr(info.filename, document if is_model else old.read(info), packing if is_model else None)

whole = json.loads(old.read(model))
graph = whole["graph_module"]["graph"]
place = next(i for i, node in enumerate(graph["nodes"]) if "set_grad" in node["target"])
node = graph["nodes"][place]
inner = next(input["arg"]["as_graph"]["graph"] for input in node["inputs"] if "as_graph" in input["arg"])
rest = inner["nodes"]
inner["nodes"] = ["@"]
before, after = json.dumps(node).split('"@"')
graph["nodes"][place] = "@"
first, last = json.dumps(whole).split('"@"')
for depth in map(int, sys.argv[3:]):
    write(f"nested-{depth}", first + before * depth + json.dumps(rest)[1:-1] + after * depth + last)
write("spaces", " " * 20_000_000 + old.read(model).decode(), zipfile.ZIP_DEFLATED)
graph["nodes"][place] = node
inner["nodes"] = rest
write("again", json.dumps(whole))
del graph["tensor_values"]
write("damaged", json.dumps(whole))
)";

/// What is said about a file, after its path.
std::string refusal(const ScratchFolder& folder, const std::string& name) {
  const std::string path = folder.path(name + ".pt2");
  const std::string text = message_of([&] {
    models().build(test_config("model: {class: Exported, path: " + path + "}"), "model");
  });
  const size_t place = text.find(path);
  return place == std::string::npos ? text : text.substr(place + path.size());
}

TEST_CASE("documents of an exported network that are nested, packed or damaged are refused") {
  const ScratchFolder folder;
  run_python(kFiles, {STEPOP_SOURCE_DIR "/eval_out/python", folder.path(), "1", "60", "100", "150",
                      "400", "3000"});
  for (const std::string name : {"whole", "again", "nested-1"}) {
    CAPTURE(name);
    CHECK(refusal(folder, name) == "no error");
  }
  CHECK(refusal(folder, "nested-60").ends_with("the value \"mul\" is not there"));
  for (const std::string name : {"nested-100", "nested-150"}) {
    CAPTURE(name);
    const std::string text = refusal(folder, name);
    CHECK(text.ends_with("graphs lie more than 64 deep in it"));
    CHECK(text.size() < 300);
  }
  for (const std::string name : {"nested-400", "nested-3000"}) {
    CAPTURE(name);
    CHECK(refusal(folder, name) == ": models/model.json is nested too deeply");
  }
  const std::string spaces = refusal(folder, "spaces");
  CHECK(spaces.starts_with(": models/model.json: "));
  CHECK(spaces.find(" unpack to 20.0 MB: it is damaged, or made to fill the memory") !=
        std::string::npos);
  CHECK(refusal(folder, "damaged") ==
        ": is damaged, or of another version of torch.export: key 'tensor_values' not found");
}

}  // namespace exported_documents_test
}  // namespace stepop
