#include "runtime/train/run/machine.h"

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <H5public.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <png.h>
#include <sys/utsname.h>
#include <torch/version.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>  // jpeglib.h needs it
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <jpeglib.h>

#include "runtime/core/system/read_file.h"
#include "runtime/core/system/usable_processors.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// `2.1.5` for 2001005.
std::string by_thousands(int number) {
  return fmt::format("{}.{}.{}", number / 1'000'000, number / 1000 % 1000, number % 1000);
}

std::string jpeg_version() {
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
  return "turbo " + by_thousands(LIBJPEG_TURBO_VERSION_NUMBER);
#else
  return fmt::format("{}", JPEG_LIB_VERSION);
#endif
}

/// The text after `key` and a colon, in the first line of `text` that begins with `key`.
std::string field_of(const std::string& text, const std::string& key) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

/// The models of the GPUs that NVIDIA's driver knows.
std::string gpu_models() {
  std::string models;
  std::error_code failed;
  for (const auto& gpu : fs::directory_iterator("/proc/driver/nvidia/gpus", failed)) {
    const std::string text =
        try_read_file((gpu.path() / "information").string(), 100'000).value_or("");
    models += (models.empty() ? "" : ", ") + field_of(text, "Model");
  }
  return models;
}

constexpr std::array kBeginnings = {"OMP_",    "GOMP_",     "KMP_",   "MKL_",      "DNNL_",
                                    "ONEDNN_", "ATEN_",     "TORCH_", "CUDA_",     "CUBLAS_",
                                    "CUDNN_",  "NVIDIA_",   "NCCL_",  "OPENBLAS_", "PYTORCH_",
                                    "MALLOC_", "TCMALLOC_", "STEPOP_"};
constexpr std::array kNames = {"LD_PRELOAD", "LD_LIBRARY_PATH", "TZ", "LANG", "LC_ALL"};

}  // namespace

bool matters_in_environment(std::string_view name) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  if (name.find_first_not_of(kLetters) != std::string_view::npos) return false;
  // `--processes` sets these variables for its processes.
  if (name == "STEPOP_PROCESSES" || name == "STEPOP_SECRET" || name == "STEPOP_MEETING") {
    return false;
  }
  const auto begins_it = [&](const char* beginning) { return name.starts_with(beginning); };
  return std::any_of(kBeginnings.begin(), kBeginnings.end(), begins_it) ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

OrderedMap<std::string> library_versions() {
  OrderedMap<std::string> all = {
      {"LibTorch", TORCH_VERSION},
      {"oneDNN and BLAS", at::get_mkldnn_version() + "; " + at::get_mkl_version()},
      {"HDF5", fmt::format("{}.{}.{}", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE)},
      {"libpng", png_get_libpng_ver(nullptr)},
      {"libjpeg", jpeg_version()},
      {"zlib", zlibVersion()},
      {"yaml-cpp", STEPOP_YAML_CPP_VERSION},
      {"fmt",
       fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"nlohmann-json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                    NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
      {"compiler", __VERSION__},
      {"glibc", gnu_get_libc_version()}};
  if (at::hasCUDA()) {
    const int number = static_cast<int>(at::detail::getCUDAHooks().versionCUDART());
    all.set("CUDA", fmt::format("{}.{}", number / 1000, number / 10 % 100));
  }
  return all;
}

std::string processor_name(const std::string& cpuinfo) {
  const std::string model = field_of(cpuinfo, "model name");
  const std::string implementer = field_of(cpuinfo, "CPU implementer");
  if (!model.empty() || implementer.empty()) return model;
  return fmt::format("ARM, implementer {}, part {}", implementer, field_of(cpuinfo, "CPU part"));
}

OrderedMap<std::string> machine_facts() {
  constexpr int64_t kMostBytes = 1'000'000;  // the first processor is enough
  OrderedMap<std::string> facts;
  utsname names{};
  if (::uname(&names) == 0) {
    facts.set("kernel", fmt::format("{} {} {}", names.sysname, names.release, names.machine));
  }
  std::string processor;
  if (std::FILE* file = std::fopen("/proc/cpuinfo", "re")) {
    std::array<char, 8192> text{};
    const size_t count = std::fread(text.data(), 1, text.size(), file);
    std::fclose(file);
    processor = processor_name({text.data(), count});
  }
  if (!processor.empty()) facts.set("processor", processor);
  facts.set("cores", fmt::format("{}", std::thread::hardware_concurrency()));
  if (const std::string limit = processor_limit(); !limit.empty()) facts.set("limit", limit);
  const std::string found = gpu_models();
  if (!found.empty()) facts.set("GPU", found);
  const auto driver = try_read_file("/proc/driver/nvidia/version", kMostBytes);
  if (driver) facts.set("GPU driver", driver->substr(0, driver->find('\n')));
  return facts;
}

OrderedMap<std::string> environment_that_matters(std::vector<std::string>& hidden) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  std::sort(entries.begin(), entries.end());
  OrderedMap<std::string> found;
  for (const auto& entry : entries) {
    const size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (equals == std::string::npos || !matters_in_environment(name)) continue;
    if (may_be_secret(name)) {
      hidden.push_back(name);
    } else {
      found.set(name, entry.substr(equals + 1));
    }
  }
  return found;
}

bool may_be_secret(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  constexpr std::array kWords = {"KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return upper.find(word) != std::string::npos; });
}

}  // namespace stepop
