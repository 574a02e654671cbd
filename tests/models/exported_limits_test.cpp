// For which sizes an exported network holds: decided as PyTorch decides with the same file.
#include "models/exported/exported_limits.h"

#include <ATen/ops/ones.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/core/base/json_text.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/test_run.h"

namespace stepop {
namespace exported_limits_test {

using Json = nlohmann::json;

/// Writes NAME.pt2 for each network, and what PyTorch says of it with inputs of other sizes.
constexpr const char* kNets = R"(import json, sys
sys.path.insert(0, sys.argv[1])
import torch
from torch import nn
from torch.export import Dim
from stepop.eval.export import export_both, write_programs

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 4, 3, padding=1)
        self.b = nn.Conv2d(3, 4, 3, padding=1)

class Branch(Net):
    def forward(self, image): return self.a(image) if image.shape[-1] > 40 else self.b(image)

class Pad(Net):
    def forward(self, input):
        width = input.shape[-1]
        return self.a(nn.functional.pad(input, (0, 8 - width % 8)) if width % 8 else input)

class Halves(Net):
    def forward(self, image):
        small = nn.functional.avg_pool2d(self.a(image), 2)
        return nn.functional.interpolate(small, scale_factor=2.0) + image[:, :1]

class Area(Net):
    def forward(self, image):
        _, _, height, width = image.shape
        if height * width // 3 > 100 and height != width: image = image * 2
        if max(height, width) > 50 or min(height, width) < 4: image = image * 3
        return self.a(image)

class Two(Net):
    def forward(self, x, y): return self.a(x) + self.b(y) if x.shape[2] + y.shape[3] < 30 else self.a(x)

class Checked(Net):
    def forward(self, image):
        count = (image[0, 0, 0] > 0.5).sum().item()
        torch._check(count >= 2)
        return self.a(image) * torch.ones(count).sum()

torch.manual_seed(1)
image = torch.ones(2, 3, 24, 40)
facts = {}
def write(name, net, inputs, sizes, programs=None):
    programs = programs or export_both(net, inputs)[0]
    write_programs(programs, f"{sys.argv[2]}/{name}.pt2")
    module = programs["eval"].module()
    facts[name] = []
    for each in sizes:
        try:
            module(*[torch.ones(size) for size in each])
            said = ""
        except Exception as error:
            said = str(error)
        facts[name].append([each, said])

def images(*sizes): return [[[batch, 3, height, width]] for batch, height, width in sizes]
write("branch", Branch(), [image], images((2, 24, 40), (1, 24, 39), (5, 7, 41), (2, 24, 400), (1, 1, 1)))
write("pad", Pad(), [image], images((2, 24, 48), (1, 3, 8), (2, 24, 41), (4, 8, 4)))
write("halves", Halves(), [image], images((2, 8, 6), (1, 8, 7), (3, 9, 8), (1, 2, 2)))
write("area", Area(), [image], images((2, 24, 41), (1, 16, 20), (2, 10, 10), (2, 60, 20), (2, 3, 300), (2, 50, 49)))
write("two", Two(), [torch.ones(2, 3, 8, 9), torch.ones(2, 3, 8, 9)],
      [[[4, 3, 8, 9], [4, 3, 8, 9]], [[4, 3, 8, 9], [2, 3, 8, 9]], [[4, 3, 20, 9], [4, 3, 20, 9]], [[1, 3, 8, 30], [1, 3, 8, 30]]])
batch, width = Dim("batch", max=64), Dim("half", min=4, max=20)
shapes = ({0: batch, 3: 2 * width},)
programs = {name: torch.export.export(Branch().train(name == "model"), (image,), dynamic_shapes=shapes, strict=False)
            for name in ("model", "eval")}
write("named", None, None, images((64, 24, 40), (65, 24, 40), (2, 24, 42), (2, 24, 8), (2, 24, 6)), programs)
write("checked", Checked(), [image], images((2, 24, 40), (2, 24, 2), (2, 24, 1)))
json.dump(facts, open(f"{sys.argv[2]}/facts.json", "w"))
)";

struct Files {
  Files() {
    run_python(
        "import sys; exec(open(sys.argv.pop(1)).read())",
        {folder.write("nets.py", kNets), STEPOP_SOURCE_DIR "/eval_out/python", folder.path()});
    facts = read_json(read_bytes(folder.path("facts.json")));
  }
  ScratchFolder folder;
  Json facts;
};
const Files& files() {
  static const Files made;
  return made;
}

std::shared_ptr<torch::nn::Module> network(const std::string& name) {
  const std::string path = files().folder.path(name + ".pt2");
  return models().build(test_config("model: {class: Exported, path: " + path + "}"), "model");
}

/// PyTorch's message has a limit without the parentheses that the file has.
std::string without_parentheses(std::string text) {
  std::erase_if(text, [](char letter) { return letter == '(' || letter == ')' || letter == ' '; });
  return text;
}

std::string said_of(torch::nn::Module& net, const std::vector<std::vector<int64_t>>& sizes) {
  std::vector<at::Tensor> inputs;
  for (const auto& each : sizes) inputs.push_back(at::ones(each));
  return message_of([&] {
    auto* one = dynamic_cast<Network*>(&net);
    if (one != nullptr) {
      one->forward(inputs.at(0));
    } else {
      dynamic_cast<MultiNetwork&>(net).forward_all(inputs);
    }
  });
}

TEST_CASE("inputs of other sizes are refused where PyTorch refuses them, with the same limit") {
  int refused = 0;
  int taken = 0;
  for (const auto& [name, cases] : files().facts.items()) {
    const auto net = network(name);
    net->eval();
    for (const auto& one : cases) {
      const auto sizes = one.at(0).get<std::vector<std::vector<int64_t>>>();
      const auto theirs = one.at(1).get<std::string>();
      CAPTURE(name);
      CAPTURE(one.dump());
      constexpr std::string_view kGuard = "Guard failed: ";
      for (int again = 0; again < 2; ++again) {  // the second time, known sizes
        const std::string ours = said_of(*net, sizes);
        CAPTURE(ours);
        if (theirs.empty()) {
          CHECK(ours == "no error");
        } else if (theirs.starts_with(kGuard) && sizes.size() > 1) {  // several limits break
          CHECK(ours.find(".pt2: the export holds for ") != std::string::npos);
        } else if (theirs.starts_with(kGuard)) {
          CHECK(without_parentheses(ours).find(without_parentheses(
                    ".pt2: the export holds for " + theirs.substr(kGuard.size()) + ", found ")) !=
                std::string::npos);
        } else {  // of torch._check
          CHECK(ours.find(theirs.substr(0, theirs.find('\n'))) != std::string::npos);
        }
      }
      ++(theirs.empty() ? taken : refused);
    }
  }
  CHECK(refused > 12);
  CHECK(taken > 12);
}

TEST_CASE("a limit is told with the sizes that were found and what helps") {
  const auto net = network("branch");
  CHECK(said_of(*net, {{4, 3, 32, 48}}) ==
        files().folder.path("branch.pt2") +
            ": the export holds for image.size()[3] <= 40, found image [4, 3, 32, 48]: the "
            "network's code may do something else for such sizes. Export it with an --example of "
            "them, or resize what the dataset gives");
  CHECK(dynamic_cast<Network&>(*net).warning() == "");
}

/// The limits of a file with one input x [*, *].
ExportedLimits limits_of(const std::vector<std::string>& guards) {
  Json model;
  model["guards_code"] = guards;
  model["graph_module"]["graph"]["tensor_values"]["x"]["sizes"] = Json::array();
  return {model, {{.kind = ExportedPort::Kind::kInput, .name = "x"}}};
}

TEST_CASE("conditions are computed as in Python") {
  const auto holds = [](std::string code, std::vector<int64_t> sizes) {
    for (size_t i = code.find('N'); i != std::string::npos; i = code.find('N', i)) {
      code.replace(i, 2, std::string("L['x'].size()[") + code[i + 1] + "]");  // N0 and N1
    }
    ExportedLimits limits = limits_of({code});
    REQUIRE(limits.unread().empty());
    return message_of([&] { limits.check({at::ones(sizes)}); }) == "no error";
  };
  // python3 -c 'N0, N1 = 7, 3; print(...)'
  CHECK(holds("(1 + (((-1) + N0) // 2))*2 == 8", {7, 3}));
  CHECK(holds("-N0 // 2 == -4 and -N0 % 4 == 1", {7, 3}));
  CHECK(holds("2**N1**2 == 512", {7, 3}));
  CHECK(holds("-2**2 == -4", {7, 3}));
  CHECK(holds("N0 / 2 == 3.5 and 7e0 == N0", {7, 3}));
  CHECK(holds("2 < N1 <= N0 < 8", {7, 3}));
  CHECK_FALSE(holds("2 < N1 <= N0 < 7", {7, 3}));
  CHECK(holds("not N1 == N0 or N0 < 0", {7, 3}));
  CHECK(holds("max(1, N0, N1) == 7 and min(N0, 2*N1) == 6", {7, 3}));
  CHECK(holds("(N0 if N0 > N1 else N1) == 7 and (N0 if N1 > N0 else N1) == 3", {7, 3}));
  CHECK(holds("math.ceil(N0 / 2) == 4 and math.floor(N0 / 2) == 3 and int(N0 / N1) == 2", {7, 3}));
  CHECK(holds("(N0 > 9) | (N1 == 3) & True", {7, 3}));
  CHECK_FALSE(holds("N0 - N1 - 1 == 5", {7, 3}));
  CHECK_FALSE(holds("False", {7, 3}));
}

TEST_CASE("conditions that cannot be read are kept for a warning, and hold") {
  std::string deep = "1";
  for (int i = 0; i < 1000; ++i) deep = "(" + deep + ")";
  for (const std::string code :
       {"L['x'].stride()[0] == 1", "L['y'].size()[0] == 1", "L['x'].size()[0] ==", "1 = 1", "",
        "gcd(4, 2) == 2", "L['x'].size()[0", "L['x'", "(1", "max() == 1", "1..2 == 1", "1 1"}) {
    CAPTURE(code);
    ExportedLimits limits = limits_of({code, "L['x'].size()[0] < 5"});
    CHECK(limits.unread().size() == 1);
    CHECK(message_of([&] { limits.check({at::ones({4, 4})}); }) == "no error");
    CHECK(message_of([&] { limits.check({at::ones({5, 4})}); }) != "no error");
  }
  CHECK(limits_of({deep}).unread().size() == 1);
  CHECK(limits_of({std::string(100000, '-') + "1"}).unread().size() == 1);
  ExportedLimits divided = limits_of({"4 // L['x'].size()[0] == 1"});
  CHECK(message_of([&] { divided.check({at::ones({0, 4})}); }) == "a size is divided by 0");
}

}  // namespace exported_limits_test
}  // namespace stepop
