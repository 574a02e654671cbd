#include "models/torch_script/script_file.h"

#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/import.h>

#include <array>
#include <fstream>

#include "runtime/base/error.h"
#include "runtime/data/datasets/checks.h"

namespace stepop {
namespace {

constexpr const char* kExport =
    "export the module in Python: torch.jit.script(module).save(\"net.pt\")";

/// What a file is that cannot be read as an archive of PyTorch's, by its first bytes.
std::string describe_start(const std::string& path) {
  std::array<char, 9> start{};
  std::ifstream file(path, std::ios::binary);
  if (file.peek() == std::ifstream::traits_type::eof()) return "an empty file";
  file.read(start.data(), start.size());
  // 8 bytes that give the length of a JSON header: https://huggingface.co/docs/safetensors
  if (start[8] == '{' && start[7] == 0 && start[6] == 0) {
    return "a safetensors file, which holds weights and no code (init_from takes weights)";
  }
  if (start[0] == 'P' && start[1] == 'K') return "an archive that is damaged or cut short";
  if (start[0] == '\x80') return "a pickle, as an old torch.save wrote it";
  return "no archive of PyTorch's";
}

/// What is wrong with the archive; empty when it holds a script.
std::string problem_of(const std::string& path) {
  try {
    caffe2::serialize::PyTorchStreamReader reader(path);
    if (reader.hasRecord("constants.pkl")) return {};
    if (reader.hasRecord("data.pkl")) return "a pickle that torch.save wrote";
    for (const auto& record : reader.getAllRecords()) {
      if (record.ends_with("model.json") || record.ends_with("exported_program.json")) {
        return "a program of torch.export";
      }
    }
    return "an archive without code";
  } catch (const std::exception&) {
    return describe_start(path);
  }
}

}  // namespace

torch::jit::Module load_script(const Config& params, std::string_view key) {
  const std::string path = get_file(params, key);
  const std::string problem = problem_of(path);
  if (!problem.empty()) {
    throw params.error(key,
                       fmt::format("{}: this is {}, not TorchScript; {}", path, problem, kExport));
  }
  try {
    return torch::jit::load(path, c10::kCPU, /*load_debug_files=*/true);
  } catch (const std::exception& error) {
    throw params.error(key, fmt::format("{}: cannot be loaded: {}", path, error_text(error)));
  }
}

}  // namespace stepop
