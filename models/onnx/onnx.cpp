// ONNX files, run by onnxruntime.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/core/programs/find_program.h"
#include "runtime/core/programs/python.h"
#include "runtime/core/system/optional_library.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace {

/// The library onnxruntime, through the first version of its C interface, a table of functions
/// whose places never change. It is loaded when a network needs it.
class OnnxRuntime {
 public:
  /// The library in the places where the system looks, or in the package onnxruntime of
  /// `find_python`. Throws Error with the installation command when there is none.
  static const OnnxRuntime& get();

  /// Places in the table.
  enum Function : size_t {
    kGetErrorMessage = 2,
    kCreateEnv = 3,
    kCreateSession = 7,
    kRun = 9,
    kCreateSessionOptions = 10,
    kSetIntraOpNumThreads = 24,
    kSessionGetInputCount = 30,
    kSessionGetOutputCount = 31,
    kSessionGetInputName = 36,
    kSessionGetOutputName = 37,
    kCreateTensorWithDataAsOrtValue = 49,
    kGetTensorMutableData = 51,
    kGetTensorElementType = 60,
    kGetDimensionsCount = 61,
    kGetDimensions = 62,
    kGetTensorTypeAndShape = 65,
    kCreateCpuMemoryInfo = 69,
    kAllocatorFree = 76,
    kGetAllocatorWithDefaultOptions = 78,
    kReleaseStatus = 93,
    kReleaseMemoryInfo = 94,
    kReleaseSession = 95,
    kReleaseValue = 96,
    kReleaseTensorTypeAndShapeInfo = 99,
    kReleaseSessionOptions = 100,
  };

  /// Calls a function that returns a status; throws Error with its message.
  template <class... Arguments>
  void call(Function function, Arguments... arguments) const {
    check(reinterpret_cast<void* (*)(Arguments...)>(table_[function])(arguments...));
  }

  /// What `function` makes of `arguments` and a place for the result, which `release` frees.
  using Made = std::unique_ptr<void, void (*)(void*)>;
  template <class... Arguments>
  Made make(Function function, Function release, Arguments... arguments) const {
    void* made = nullptr;
    call(function, arguments..., &made);
    return {made, reinterpret_cast<void (*)(void*)>(table_[release])};
  }

  void* environment() const { return environment_; }

 private:
  OnnxRuntime();

  void check(void* status) const;

  void* const* table_ = nullptr;
  void* environment_ = nullptr;  ///< Lives as long as the process.
};

/// Prints the library of an installed package, without importing it.
constexpr const char* kFind = R"py(
import glob, importlib.util, os
spec = importlib.util.find_spec("onnxruntime")
for folder in spec.submodule_search_locations if spec else ():
    print("".join(glob.glob(os.path.join(folder, "capi", "libonnxruntime.so*"))[:1]), end="")
)py";

OptionalLibrary find_library() {
  const std::string python = find_python();
  const std::string need = fmt::format(
      "ONNX files are run by onnxruntime, which is not there: {} -m pip install onnxruntime",
      python);
  try {
    return {"libonnxruntime.so.1", need};
  } catch (const Error&) {
    if (find_program(python).empty()) throw;
    const std::string found = run_child({python, "-c", kFind}).out;
    if (found.empty()) throw;
    return {found, need};
  }
}

const OnnxRuntime& OnnxRuntime::get() {
  static const OnnxRuntime runtime;
  return runtime;
}

OnnxRuntime::OnnxRuntime() {
  struct Base {
    void* const* (*table)(uint32_t version);
    const char* (*version)();
  };
  const OptionalLibrary library = find_library();
  const Base* (*base)() = nullptr;
  library.find(base, "OrtGetApiBase");
  table_ = base()->table(1);
  if (table_ == nullptr) {
    throw Error(fmt::format("onnxruntime {} has no longer the first version of its interface",
                            base()->version()));
  }
  constexpr int kErrors = 3;  // what it logs
  call(kCreateEnv, kErrors, "stepop", &environment_);
}

void OnnxRuntime::check(void* status) const {
  if (status == nullptr) return;
  const Made owned(status, reinterpret_cast<void (*)(void*)>(table_[kReleaseStatus]));
  throw Error(reinterpret_cast<const char* (*)(void*)>(table_[kGetErrorMessage])(status));
}

/// The types of tensors, by their numbers in ONNX.
const std::map<int, at::ScalarType>& onnx_types() {
  static const std::map<int, at::ScalarType> types = {
      {1, at::kFloat}, {2, at::kByte}, {3, at::kChar},  {5, at::kShort},   {6, at::kInt},
      {7, at::kLong},  {9, at::kBool}, {10, at::kHalf}, {11, at::kDouble}, {16, at::kBFloat16}};
  return types;
}

/// An ONNX file, run by onnxruntime on the CPU. It has no parameters: it cannot be trained.
class Onnx : public Network {
 public:
  struct Params {
    Path path;
    std::optional<std::string> output;

    void declare(Parameters& p) {
      p.require("path", path, "the file");
      p.add("output", output, "the name of the output; null: the first one");
    }
  };

  Onnx(const Params& params, const Config& config) : runtime_(runtime_for(config)) {
    using enum OnnxRuntime::Function;
    const std::string& path = params.path.text;
    const Made options = runtime_.make(kCreateSessionOptions, kReleaseSessionOptions);
    runtime_.call(kSetIntraOpNumThreads, options.get(), at::get_num_threads());
    try {
      session_ = runtime_.make(kCreateSession, kReleaseSession, runtime_.environment(),
                               path.c_str(), options.get());
    } catch (const Error& error) {
      throw config.error("path", fmt::format("{}: {}", path, error.what()));
    }
    const auto inputs = names(kSessionGetInputCount, kSessionGetInputName);
    if (inputs.size() != 1) {
      throw config.error("path",
                         fmt::format("{}: expected one input, found {}", path, list_text(inputs)));
    }
    input_ = inputs.front();
    const auto outputs = names(kSessionGetOutputCount, kSessionGetOutputName);
    output_ = params.output.value_or(outputs.front());
    if (std::ranges::find(outputs, output_) == outputs.end()) {
      throw config.error("output", fmt::format("{}: there is no output \"{}\"; there are: {}", path,
                                               output_, list_text(outputs)));
    }
  }

  at::Tensor forward(const at::Tensor& input) override {
    using enum OnnxRuntime::Function;
    if (input.requires_grad()) throw Error("an ONNX file gives no gradients");
    const at::Tensor given = input.cpu().contiguous();
    constexpr int kDeviceAllocator = 0;
    constexpr int kDefaultMemory = 0;
    const Made memory =
        runtime_.make(kCreateCpuMemoryInfo, kReleaseMemoryInfo, kDeviceAllocator, kDefaultMemory);
    const Made value = runtime_.make(kCreateTensorWithDataAsOrtValue, kReleaseValue, memory.get(),
                                     given.data_ptr(), given.nbytes(), given.sizes().data(),
                                     static_cast<size_t>(given.dim()), type_of(given));
    const char* const input_name = input_.c_str();
    const char* const output_name = output_.c_str();
    const void* const values[] = {value.get()};
    const void* const no_options = nullptr;
    constexpr size_t kOne = 1;
    const Made made = runtime_.make(kRun, kReleaseValue, session_.get(), no_options, &input_name,
                                    &values[0], kOne, &output_name, kOne);
    return tensor_of(made.get()).to(input.device());
  }

 private:
  using Made = OnnxRuntime::Made;

  static const OnnxRuntime& runtime_for(const Config& config) {
    try {
      return OnnxRuntime::get();
    } catch (const Error& error) {
      throw config.error("class", error.what());
    }
  }

  static int type_of(const at::Tensor& tensor) {
    for (const auto& [number, type] : onnx_types()) {
      if (type == tensor.scalar_type()) return number;
    }
    throw Error(fmt::format("ONNX has no tensors of {}", at::toString(tensor.scalar_type())));
  }

  std::vector<std::string> names(OnnxRuntime::Function count_of,
                                 OnnxRuntime::Function name_of) const {
    void* allocator = nullptr;  // the library's own, which is never freed
    runtime_.call(OnnxRuntime::kGetAllocatorWithDefaultOptions, &allocator);
    size_t count = 0;
    runtime_.call(count_of, session_.get(), &count);
    std::vector<std::string> found;
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      runtime_.call(name_of, session_.get(), i, allocator, &name);
      found.emplace_back(name);
      runtime_.call(OnnxRuntime::kAllocatorFree, allocator, static_cast<void*>(name));
    }
    return found;
  }

  at::Tensor tensor_of(void* value) const {
    using enum OnnxRuntime::Function;
    const Made about = runtime_.make(kGetTensorTypeAndShape, kReleaseTensorTypeAndShapeInfo, value);
    int type = 0;
    size_t dimensions = 0;
    runtime_.call(kGetTensorElementType, about.get(), &type);
    runtime_.call(kGetDimensionsCount, about.get(), &dimensions);
    std::vector<int64_t> shape(dimensions);
    runtime_.call(kGetDimensions, about.get(), shape.data(), dimensions);
    const auto known = onnx_types().find(type);
    if (known == onnx_types().end()) {
      throw Error(fmt::format("the output \"{}\" has tensors of ONNX's type {}", output_, type));
    }
    at::Tensor tensor = at::empty(shape, known->second);
    void* data = nullptr;
    runtime_.call(kGetTensorMutableData, value, &data);
    if (tensor.numel() > 0) std::memcpy(tensor.data_ptr(), data, tensor.nbytes());
    return tensor;
  }

  const OnnxRuntime& runtime_;
  Made session_{nullptr, nullptr};
  std::string input_;
  std::string output_;
};

STEPOP_REGISTER_MODEL(Onnx, {"An ONNX file, run by onnxruntime on the CPU; it cannot be trained."});

}  // namespace
}  // namespace stepop
