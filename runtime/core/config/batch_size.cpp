#include "runtime/core/config/batch_size.h"

#include <fmt/format.h>

#include <limits>
#include <string>

namespace stepop {
namespace {

constexpr const char* kBatchSize = "batch_size";
constexpr const char* kTestBatchSize = "test_batch_size";

int64_t read_size(const Config& config, const std::string& key, int64_t processes) {
  const Value* value = config.peek(key);
  if (value == nullptr || !value->is_map()) return config.get_at_least(key, 1);
  constexpr const char* kPerProcess = "per_process";
  if (value->as_map().size() != 1 || value->as_map().find(kPerProcess) == nullptr) {
    throw config.error(
        key, fmt::format("expected a number of examples, or {{per_process: 64}}, found {}",
                         value->describe()));
  }
  const std::string path = key + "/" + kPerProcess;
  const int64_t size = config.get_at_least(path, 1);
  if (size <= std::numeric_limits<int64_t>::max() / processes) return size * processes;
  throw config.error(path, fmt::format("too many for {} processes", processes));
}

}  // namespace

int64_t read_batch_size(const Config& config, int64_t processes) {
  return read_size(config, kBatchSize, processes);
}

int64_t read_test_batch_size(const Config& config) {
  const int64_t usual = read_size(config, kBatchSize, 1);
  if (config.has(kTestBatchSize)) return read_size(config, kTestBatchSize, 1);
  config.note_default(kTestBatchSize, Value(usual));
  return usual;
}

}  // namespace stepop
