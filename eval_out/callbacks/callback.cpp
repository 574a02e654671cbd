#include "eval_out/callbacks/callback.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/system/folders.h"
#include "runtime/data/example_random.h"

namespace stepop {
namespace {

/// The seed of the order in which the evaluation went through its split, as in Splits.
uint64_t order_seed(const CallbackArguments& arguments) {
  constexpr int64_t kDefaultSeed = 1;
  const Value* seed = arguments.config.root().peek("seed");
  const Attribute* split = arguments.data_out.attributes().find("split");
  return evaluation_seed(
      static_cast<uint64_t>(seed == nullptr ? kDefaultSeed
                                            : arguments.config.root().get("seed", kDefaultSeed)),
      split != nullptr && std::holds_alternative<std::string>(*split)
          ? std::get<std::string>(*split)
          : "validation");
}

}  // namespace

std::string CallbackArguments::path_of(const std::string& file) const {
  const std::string folder = name.empty() ? root : root + "/" + name;
  make_folders(folder);
  return folder + "/" + file;
}

Batch CallbackArguments::examples(int64_t first, int64_t count) const {
  const at::Tensor index = data_out.index(first, count);
  const auto* indices = index.const_data_ptr<int64_t>();
  const int64_t size = data_in.size();
  const uint64_t seed = order_seed(*this);
  std::vector<Random> randoms;
  for (int64_t i = 0; i < count; ++i) {
    if (indices[i] < 0 || indices[i] >= size) {
      throw Error(fmt::format("row {} (example {} of the dataset): the dataset has {}", first + i,
                              indices[i], counted(size, "example")));
    }
    randoms.push_back(random_at(seed, 0, first + i));
  }
  return load_batch(data_in, std::span(indices, static_cast<size_t>(count)), randoms).to(at::kCPU);
}

Example CallbackArguments::fixed_example(int64_t index) const {
  Random random = random_of_fixed_example(index);
  return data_in.get(index, random);
}

OrderedMap<std::vector<KeyParameter>>& keys_of_callbacks() {
  static OrderedMap<std::vector<KeyParameter>> keys;
  return keys;
}

OrderedMap<CallbackCheck>& callback_checks() {
  static OrderedMap<CallbackCheck> checks;
  return checks;
}

CallbackRegistry& callbacks() {
  static CallbackRegistry registry("callback");
  return registry;
}

}  // namespace stepop
