#include "runtime/data/batch_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/data/example_random.h"

namespace stepop {

BatchOrder::BatchOrder(std::string name, std::unique_ptr<Sampler> sampler,
                       BatchOrderOptions options)
    : name_(std::move(name)), sampler_(std::move(sampler)), options_(options) {
  size_ = static_cast<int64_t>(epoch_order(0)->size());
  if (size_ == 0) throw Error(fmt::format("{}: the dataset is empty", name_));
  batches_per_epoch_ = options_.drop_last ? size_ / options_.batch_size
                                          : (size_ + options_.batch_size - 1) / options_.batch_size;
  if (batches_per_epoch_ == 0) {
    throw Error(
        fmt::format("{}: drop_last leaves no batch: the dataset has {} examples, a batch {}; "
                    "choose a batch_size of {} or less, or drop_last: false",
                    name_, size_, options_.batch_size, size_));
  }
  if (options_.max_batches > 0) {
    batches_per_epoch_ = std::min(batches_per_epoch_, options_.max_batches);
  }
}

int64_t BatchOrder::examples_in(int64_t batches) const {
  return std::min(size_, batches * options_.batch_size);
}

std::shared_ptr<const std::vector<int64_t>> BatchOrder::epoch_order(int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  const auto slot = static_cast<size_t>(epoch % 2);
  if (cached_epoch_[slot] != epoch) {
    cached_[slot] = std::make_shared<const std::vector<int64_t>>(sampler_->order(epoch));
    cached_epoch_[slot] = epoch;
  }
  return cached_[slot];
}

std::vector<int64_t> BatchOrder::indices(int64_t batch) const {
  const auto order = epoch_order(batch / batches_per_epoch_);
  const int64_t first = batch % batches_per_epoch_ * options_.batch_size;
  const int64_t last = std::min(first + options_.batch_size, size_);
  return {order->begin() + first, order->begin() + last};
}

std::vector<Random> BatchOrder::randoms(int64_t batch) const {
  const int64_t epoch = batch / batches_per_epoch_;
  const int64_t first = batch % batches_per_epoch_ * options_.batch_size;
  const int64_t last = std::min(first + options_.batch_size, size_);
  std::vector<Random> randoms;
  randoms.reserve(static_cast<size_t>(last - first));
  for (int64_t position = first; position < last; ++position) {
    randoms.push_back(random_at(options_.seed, epoch, position));
  }
  return randoms;
}

}  // namespace stepop
