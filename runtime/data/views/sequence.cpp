#include "runtime/data/views/sequence.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/core/base/number_text.h"

namespace stepop {
void Sequence::Params::declare(Parameters& p) {
  constexpr double kMostFrames = 1 << 30;
  const Range frames = at_least(1).at_most(kMostFrames);
  p.require("dataset", dataset, "whose examples are the frames");
  p.require("length", length, "T, the number of frames", frames);
  p.add("step", step, "from one frame to the next", frames);
  p.add("every", every, "from the beginning of one sequence to that of the next", frames);
  p.add("same_changes", same_changes,
        "all frames get the same random numbers, so that Augment, inside, changes them alike");
  add_groups(p, "within", dataset, within,
             "label whose value is the same in all frames, such as the video's number");
  add_groups(p, "consecutive", dataset, consecutive,
             "label that grows by one from example to example, such as a frame's number; where it "
             "does not is a border");
}

Sequence::Sequence(Params params, const Config& config)
    : source_(std::move(params.dataset)),
      length_(params.length),
      step_(params.step),
      every_(params.every),
      same_changes_(params.same_changes) {
  const auto& same = params.within;
  const auto& growing = params.consecutive;
  const int64_t size = source_.size();
  runs_ = {{0, 0}};
  int64_t begin = 0;
  for (int64_t i = 1; i < size && !(same.empty() && growing.empty()); ++i) {
    const auto at = static_cast<size_t>(i);
    const bool is_border = (!same.empty() && same[at] != same[at - 1]) ||
                           (!growing.empty() && growing[at] != growing[at - 1] + 1);
    if (is_border) add_run(std::exchange(begin, i), i);
  }
  add_run(begin, size);
  if (runs_.size() == 1) {
    throw config.error(
        "length", fmt::format("no sequence of {} examples, {} apart, fits into {}, which has {}{}",
                              length_, step_, source_.place(), with_thousands(size),
                              same.empty() && growing.empty() ? "" : " and borders between them"));
  }
}

void Sequence::add_run(int64_t begin, int64_t end) {
  const int64_t span = (length_ - 1) * step_ + 1;
  if (end - begin < span) return;
  const int64_t count = (end - begin - span) / every_ + 1;
  const int64_t before = runs_.back().first_sequence;
  runs_.back().first_example = begin;
  runs_.push_back({end, before + count});
}

int64_t Sequence::first_frame(int64_t index) const {
  const auto run = std::upper_bound(runs_.begin(), runs_.end(), index,
                                    [](int64_t sequence, const Run& each) {
                                      return sequence < each.first_sequence;
                                    }) -
                   1;
  return run->first_example + (index - run->first_sequence) * every_;
}

std::vector<Random> Sequence::frame_randoms(Random& random) const {
  std::vector<Random> randoms;
  for (int64_t t = 0; t < length_; ++t) {
    randoms.push_back(same_changes_ && t > 0 ? randoms[0] : split_off(random));
  }
  return randoms;
}

void Sequence::add_frames(int64_t index, Random& random, std::vector<int64_t>& frames,
                          std::vector<Random>& randoms) const {
  check_index(index, size());
  const int64_t first = first_frame(index);
  for (int64_t t = 0; t < length_; ++t) frames.push_back(first + t * step_);
  for (const Random& own : frame_randoms(random)) randoms.push_back(own);
}

Example Sequence::frame(int64_t index, int64_t t, Random& random) const {
  check_index(index, size());
  return source_.get(first_frame(index) + t * step_, frame_randoms(random)[static_cast<size_t>(t)]);
}

Example Sequence::get(int64_t index, Random& random) const {
  std::vector<Example> frames;
  check_index(index, size());
  const int64_t first = first_frame(index);
  std::vector<int64_t> indices;
  for (Random& own : frame_randoms(random)) {
    indices.push_back(first + static_cast<int64_t>(frames.size()) * step_);
    frames.push_back(source_.get(indices.back(), own));
  }
  const Batch batch = source_->collate(frames, std::move(indices));
  Example sequence{.tensors = batch.tensors(), .texts = {}};
  for (const auto& [key, texts] : batch.texts()) {
    for (size_t t = 0; t < texts.size(); ++t) {
      sequence.texts.set(key + "/" + std::to_string(t), texts[t]);
    }
  }
  return sequence;
}

std::optional<Batch> Sequence::get_batch(std::span<const int64_t> indices,
                                         std::span<Random> randoms) const {
  std::vector<int64_t> frames;
  std::vector<Random> frame_randoms;
  std::vector<int64_t> outer;
  for (size_t i = 0; i < indices.size(); ++i) {
    add_frames(indices[i], randoms[i], frames, frame_randoms);
    outer.resize(frames.size(), indices[i]);
  }
  return in_sequences(source_.load(frames, frame_randoms, outer), {indices.begin(), indices.end()});
}

Batch Sequence::in_sequences(const Batch& frames, std::vector<int64_t> indices) const {
  const auto count = static_cast<int64_t>(indices.size());
  OrderedMap<at::Tensor> tensors;
  for (const auto& [key, tensor] : frames.tensors()) {
    std::vector<int64_t> shape = {count, length_};
    shape.insert(shape.end(), tensor.sizes().begin() + 1, tensor.sizes().end());
    tensors.set(key, tensor.reshape(shape));
  }
  OrderedMap<std::vector<std::string>> texts;
  const auto length = static_cast<size_t>(length_);
  for (const auto& [key, all] : frames.texts()) {
    for (size_t t = 0; t < length; ++t) {
      std::vector<std::string> of_frame;
      for (size_t i = t; i < all.size(); i += length) of_frame.push_back(all[i]);
      texts.set(key + "/" + std::to_string(t), std::move(of_frame));
    }
  }
  return {std::move(tensors), std::move(texts), std::move(indices)};
}

at::Tensor Sequence::labels(std::string_view key) const {
  const at::Tensor labels = source_.labels(key);
  if (!labels.defined()) return labels;
  const at::Tensor frames = at::empty({size() * length_}, at::kLong);
  auto* frame = frames.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < size(); ++i) {
    const int64_t first = first_frame(i);
    for (int64_t t = 0; t < length_; ++t) *frame++ = first + t * step_;
  }
  std::vector<int64_t> shape = {size(), length_};
  shape.insert(shape.end(), labels.sizes().begin() + 1, labels.sizes().end());
  return labels.index_select(0, frames).reshape(shape);
}

STEPOP_REGISTER_DATASET(Sequence, {"Examples that follow each other, as one: tensors [T, ...]."});

}  // namespace stepop
