#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/views/view.h"

namespace stepop {

/// Consecutive examples of the source as one example: each tensor [...] of the source is [T, ...]
/// here, and a text `key` becomes `key/0` ... `key/T-1`. Where the config names labels, a sequence
/// stays within a run of examples in which one label keeps its value, or another grows by one.
class Sequence : public Dataset, public KeepsFloat64 {
 public:
  struct Params {
    Source dataset;
    int64_t length = 0;
    int64_t step = 1;
    int64_t every = 1;
    std::vector<int64_t> within = {};
    std::vector<int64_t> consecutive = {};
    bool same_changes = false;

    void declare(Parameters& p);
  };

  Sequence(Params params, const Config& config);

  int64_t size() const override { return runs_.back().first_sequence; }
  Example get(int64_t index, Random& random) const override;
  /// The source's `collate` puts all frames of a batch side by side.
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override;
  /// [size(), T, ...].
  at::Tensor labels(std::string_view key) const override;
  std::vector<std::string> label_keys() const override { return source_->label_keys(); }
  std::string notice() const override { return source_->notice(); }
  bool keep_float64(std::string_view key) override { return source_.keep_float64(key); }

  /// T, the number of frames.
  int64_t length() const { return length_; }

  /// The source, whose examples are the frames.
  const Dataset& frames() const { return *source_; }

  /// One frame, 0 <= t < T, as it is in `get(index, random)`.
  Example frame(int64_t index, int64_t t, Random& random) const;

 private:
  /// A run of examples without a border between them.
  struct Run {
    int64_t first_example;
    int64_t first_sequence;  ///< The index in this dataset.
  };

  void add_run(int64_t begin, int64_t end);
  /// The source's index of the sequence's first frame.
  int64_t first_frame(int64_t index) const;
  std::vector<Random> frame_randoms(Random& random) const;
  void add_frames(int64_t index, Random& random, std::vector<int64_t>& frames,
                  std::vector<Random>& randoms) const;
  /// The batch of B * T frames as one of B sequences.
  Batch in_sequences(const Batch& frames, std::vector<int64_t> indices) const;

  Source source_;
  int64_t length_;
  int64_t step_;
  int64_t every_;
  bool same_changes_;
  std::vector<Run> runs_;  ///< The last entry marks the end: its first_sequence is the number of
                           ///< sequences.
};

}  // namespace stepop
