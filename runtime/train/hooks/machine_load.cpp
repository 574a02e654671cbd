#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/core/programs/find_program.h"
#include "runtime/train/iterator/hook.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

/// The number at the beginning of a file of the system.
std::optional<double> number_in(const fs::path& path) {
  std::ifstream file(path);
  double number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// The part of the memory that is in use, in percent.
std::optional<double> memory_percent() {
  std::ifstream file("/proc/meminfo");
  double total = 0;
  double available = 0;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    double value = 0;
    words >> name >> value;
    if (name == "MemTotal:") total = value;
    if (name == "MemAvailable:") available = value;
  }
  if (total <= 0) return std::nullopt;
  return 100 * (1 - available / total);
}

/// The highest temperature of the machine's sensors, in degrees Celsius.
std::optional<double> temperature() {
  std::optional<double> highest;
  std::error_code none;
  for (const auto& sensor : fs::directory_iterator("/sys/class/hwmon", none)) {
    std::error_code failed;
    for (const auto& file : fs::directory_iterator(sensor.path(), failed)) {
      const std::string name = file.path().filename();
      if (!name.starts_with("temp") || !name.ends_with("_input")) continue;
      const auto value = number_in(file.path());
      if (value && *value / 1000 > highest.value_or(0)) highest = *value / 1000;
    }
  }
  return highest;
}

/// Logs how busy the machine is: its processors, its memory, its heat, and each GPU as nvidia-smi
/// reports it, which runs beside the training.
class MachineLoad : public Hook {
 public:
  MachineLoad(const Config& /*params*/, const Context& context) : context_(context) {}

  void before_training() override {
    if (context_.rank != 0 || find_program("nvidia-smi").empty()) return;
    try {
      gpus_ = std::make_unique<OutputOfChild>(std::vector<std::string>{
          "nvidia-smi", "--query-gpu=index,utilization.gpu,memory.used,temperature.gpu,power.draw",
          "--format=csv,noheader,nounits", "--loop=5"});
    } catch (const Error& error) {
      context_.log.warn(fmt::format("MachineLoad: {}", error.what()));
    }
  }

  /// Logs may be rarer than the pipe is full, at which nvidia-smi waits.
  void after_step(int64_t /*step*/) override {
    const auto now = std::chrono::steady_clock::now();
    if (now - read_ < std::chrono::seconds(1)) return;
    read_gpus();
  }

  Logs log(int64_t /*step*/) override {
    Logs logs;
    const auto set = [&](const char* name, std::optional<double> value) {
      if (value) logs.scalars.set(name, *value);
    };
    // The mean number of processes that were ready in the last minute.
    if (const auto load = number_in("/proc/loadavg")) {
      set("load_percent", 100 * *load / static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)));
    }
    set("memory_percent", memory_percent());
    set("celsius", temperature());
    read_gpus();
    for (const auto& [name, value] : of_gpus_) logs.scalars.set(name, value);
    return logs;
  }

 private:
  /// Takes the newest line of each GPU: `0, 97, 20480, 65, 250.10`.
  void read_gpus() {
    if (!gpus_) return;
    read_ = std::chrono::steady_clock::now();
    char piece[4096];
    while (const size_t size = gpus_->read(piece, sizeof(piece), 0)) text_.append(piece, size);
    for (size_t end = 0; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1)) {
      std::istringstream cells(text_.substr(0, end));
      std::string cell;
      std::vector<std::string> values;
      while (std::getline(cells, cell, ',')) values.push_back(cell);
      constexpr const char* kNames[] = {"percent", "memory_mib", "celsius", "watt"};
      for (size_t i = 0; i < std::size(kNames) && i + 1 < values.size(); ++i) {
        char* number_end = nullptr;
        const double number = std::strtod(values[i + 1].c_str(), &number_end);
        if (number_end == values[i + 1].c_str()) continue;  // [N/A]
        of_gpus_.set(fmt::format("gpu{}_{}", values[0], kNames[i]), number);
      }
    }
  }

  const Context& context_;
  std::unique_ptr<OutputOfChild> gpus_;
  std::chrono::steady_clock::time_point read_;
  std::string text_;  ///< Read, and not yet a whole line.
  OrderedMap<double> of_gpus_;
};

STEPOP_REGISTER_HOOK(
    MachineLoad, {"Logs how busy the machine is: load_percent (processes that want to run, of the "
                  "last minute, per processor), memory_percent, celsius (the hottest sensor), and "
                  "by nvidia-smi gpu0_percent, gpu0_memory_mib, gpu0_celsius, gpu0_watt.",
                  {}});

}  // namespace
}  // namespace stepop
