#include "runtime/train/loop/shared_logs.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/random.h"

namespace stepop {

void share_logs(World& world, OrderedMap<Logs>& logs,
                const std::function<double(const std::string& op)>& weight) {
  if (world.is_alone()) return;
  std::vector<double> values;
  std::string names;
  for (const auto& [op, result] : logs) {
    const double factor = weight(op);
    for (const auto& [key, scalar] : result.scalars) {
      const std::string name = op + "/" + key;
      names += (names.empty() ? "" : ", ") + name;
      if (const WeightedMean* mean = scalar.weighted()) {
        const double own = factor == 0 ? 0 : mean->weight().item<double>();
        values.push_back(own == 0 ? 0 : scalar.read(name) * own);
        values.push_back(own);
        continue;
      }
      // A scalar with no weight may be NaN.
      values.push_back(factor == 0 ? 0 : scalar.read(name) * factor);
    }
  }
  // 48 bits of the names' hash as two numbers that a double holds, and their negatives: the maximum
  // over all processes equals each process's number if all have the same names.
  const uint64_t hash = seed_of(names);
  const auto high = static_cast<double>(hash >> 40);
  const auto low = static_cast<double>(hash & 0xffffff);
  const std::vector<double> largest = world.max({high, low, -high, -low});
  if (largest != std::vector<double>{high, low, -high, -low}) {
    world.check_same("what is logged in this step", names);
    throw Error("what is logged in this step is not the same in all processes");
  }
  if (values.empty()) return;
  world.sum(at::from_blob(values.data(), {static_cast<int64_t>(values.size())},
                          at::TensorOptions(at::kDouble)));
  size_t next = 0;
  for (auto& [op, result] : logs) {
    for (auto& [key, scalar] : result.scalars) {
      if (scalar.weighted() == nullptr) {
        scalar = values[next++];
        continue;
      }
      const double sum = values[next++];
      const double own = values[next++];
      scalar = WeightedMean(at::scalar_tensor(own == 0 ? 0 : sum / own, at::kDouble), own);
    }
  }
}

}  // namespace stepop
