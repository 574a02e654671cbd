#include "runtime/tools/export/python_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/core/programs/find_program.h"
#include "runtime/core/programs/python.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/temporary_folder.h"

namespace stepop {

namespace fs = std::filesystem;

namespace {

/// Goes before a writer's code: python -c CODE net.pt examples.pt FILE OPTIONS PACKAGES. The last
/// line is JSON. The exit code is 4 when a package is missing, with the names in the last line, and
/// 5 after "reason: ...".
constexpr const char* kPreamble = R"py(
import importlib, json, logging, sys, warnings

warnings.filterwarnings("ignore")
net_path, examples_path, path, options, packages = sys.argv[1:6]
missing = []
for name in packages.split():
    try:
        importlib.import_module(name)
    except ImportError:
        missing.append(name)
if missing:
    print(" ".join(missing))
    sys.exit(4)
import torch

logging.disable(logging.WARNING)
options = json.loads(options)
net = torch.jit.load(net_path, map_location="cpu").eval()
examples = torch.load(examples_path, map_location="cpu", weights_only=True)


def refuse(reason):
    print(f"reason: {reason}")
    sys.exit(5)


def difference(found, expected, who):
    """The largest one, relative to the largest output."""
    most = 0.0
    for a, b in zip(found, expected):
        if list(a.shape) != list(b.shape):
            refuse(f"{who} gives {list(a.shape)} where the network gives {list(b.shape)}")
        if b.numel() == 0:
            continue
        a, b = a.double(), b.double()
        most = max(most, ((a - b).abs().max() / (b.abs().max().item() or 1.0)).item())
    return most if most == most else 1e300


def done(report):
    print(json.dumps(report))
    sys.exit(0)

)py";

constexpr int kMissing = 4;
constexpr int kRefused = 5;

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

/// The file while Python writes it, which is removed unless it was moved to its place.
struct UnfinishedFile {
  explicit UnfinishedFile(std::string of) : path(std::move(of)) {}
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  ~UnfinishedFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  const std::string path;
};

/// What a writer that ended with kRefused says; nothing when something else ended so.
std::string reason_in(const std::string& out) {
  constexpr size_t kMost = 1000;
  constexpr std::string_view kMark = "reason: ";  // libraries print too
  const size_t begin = out.rfind(kMark);
  if (begin == std::string::npos) return "";
  return shortened(trimmed_end(out.substr(begin + kMark.size())), kMost);
}

std::string pip(const std::string& python, const std::string& packages) {
  return fmt::format("{} -m pip install {}", python, packages);
}

}  // namespace

void write_with_python(const PythonWriter& writer, const ExportedNetwork& exported,
                       const std::string& path, const nlohmann::json& options,
                       const InterruptCheck& interrupt,
                       const std::function<void(const nlohmann::json&)>& accepts) {
  const std::string python = find_python();
  const std::string packages = fmt::format("{}", fmt::join(writer.packages, " "));
  if (find_program(python).empty()) {
    throw Error(
        fmt::format("{}: {} is made by Python, and there is no {}: name one by the environment's "
                    "STEPOP_PYTHON, with its packages: {}",
                    path, writer.what, python, pip("python3", packages)));
  }
  const TemporaryFolder folder("stepop-export");
  write_file_atomically(folder / "net.pt", exported.file);
  write_file_atomically(folder / "examples.pt", pickled(exported.examples));
  const UnfinishedFile part(path + ".part");
  const ChildResult result =
      run_child({python, "-c", std::string(kPreamble) + writer.code, folder / "net.pt",
                 folder / "examples.pt", part.path, write_json(options), packages},
                interrupt);
  const std::string answer = last_line_of(result.out);
  const auto fail = [&](const std::string& text) {
    return Error(fmt::format("{}: {}", path, text));
  };
  const int code = result.signal == 0 ? result.exit_code : 0;
  if (code == kMissing && !answer.empty()) {
    throw fail(fmt::format("{} has no {}, which {} takes: {}", python, answer, writer.what,
                           pip(python, answer)));
  }
  const std::string reason = code == kRefused ? reason_in(result.out) : "";
  if (!reason.empty()) throw fail(reason);
  const auto json = try_read_json(answer);
  if (result.exit_code != 0 || result.signal != 0 || !json.is_object()) {
    throw fail(fmt::format(
        "{} ended with the {} {}: {}", python, result.signal != 0 ? "signal" : "status",
        result.signal != 0 ? result.signal : result.exit_code, last_line_of(result.err)));
  }
  try {
    accepts(json);
  } catch (const Error& error) {
    throw fail(error.what());
  }
  rename_into_place(part.path, path);
}

}  // namespace stepop
