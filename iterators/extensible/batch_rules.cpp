#include "iterators/extensible/batch_rules.h"

#include <ATen/ops/argsort.h>
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "runtime/core/base/text.h"

namespace stepop::extensible {

BatchRules::BatchRules(const Config& train)
    : train_(train),
      parts_(train.get_at_least("mega_batch_factor", 1, 1)),
      cuts_lengths_(train.get("auto_collate", false)) {
  if (train.has("mod_batch_factor")) {
    other_parts_ = train.get_at_least("mod_batch_factor", 1);
    other_every_ = train.get_at_least("mod_batch_factor_every", 1);
  }
  if (train.has("sort_key")) sort_key_ = train.get<std::string>("sort_key");
}

int64_t BatchRules::parts(int64_t iteration) const {
  return other_parts_ > 0 && iteration % other_every_ == 0 ? other_parts_ : parts_;
}

Batch BatchRules::sorted(const Batch& batch) const {
  if (sort_key_.empty()) return batch;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : batch.tensors()) names.push_back(name);
  const at::Tensor* key = batch.tensors().find(sort_key_);
  if (key == nullptr || key->dim() != 1) {
    throw train_.error("sort_key", fmt::format("expected a tensor [B] of the batch, found \"{}\"; "
                                               "the batch has: {}",
                                               sort_key_, list_text(names)));
  }
  const at::Tensor order = at::argsort(*key, /*stable=*/true, /*dim=*/0, /*descending=*/true);
  Batch sorted = batch;
  for (const auto& name : names) sorted.set(name, batch[name].index_select(0, order));
  return sorted;
}

Batch BatchRules::cut(const Batch& batch) const {
  if (!cuts_lengths_) return batch;
  Batch cut = batch;
  for (const auto& [name, tensor] : batch.tensors()) {
    const at::Tensor* lengths = batch.tensors().find(name + "_lengths");
    if (lengths == nullptr || tensor.dim() < 2) continue;
    const auto longest = std::clamp<int64_t>(lengths->max().item<int64_t>(), 0, tensor.size(-1));
    cut.set(name, tensor.narrow(-1, 0, longest));
  }
  return cut;
}

}  // namespace stepop::extensible
