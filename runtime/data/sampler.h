#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/data/dataset.h"

namespace stepop {

/// The order in which an epoch visits a dataset: a pure function of the epoch, so that a resumed
/// run jumps to its position. An index may come several times or not at all.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// The dataset's indices in the order of `epoch`, counted from 0. Every epoch has the same
  /// length.
  virtual std::vector<int64_t> order(int64_t epoch) const = 0;
};

/// A sampler is built from its parameters, its dataset and a seed of (run, split).
using SamplerRegistry =
    Registry<std::unique_ptr<Sampler>(const Config&, const Dataset&, uint64_t seed)>;
SamplerRegistry& samplers();

}  // namespace stepop

/// Registers a class with a constructor from (const Config&, const Dataset&, uint64_t seed).
#define STEPOP_REGISTER_SAMPLER(name, Class, ...)                                           \
  STEPOP_REGISTER(                                                                          \
      ::stepop::samplers(), #name,                                                          \
      [](const ::stepop::Config& params, const ::stepop::Dataset& dataset, uint64_t seed) { \
        return std::make_unique<Class>(params, dataset, seed);                              \
      },                                                                                    \
      __VA_ARGS__)
