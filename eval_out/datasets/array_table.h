#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "eval_out/hdf5/hdf5_rows.h"
#include "runtime/data/batch.h"

namespace stepop {

class Config;

/// How many bytes of arrays are kept in memory unless `cache_bytes` says otherwise.
inline constexpr int64_t kArrayCacheBytes = 256'000'000;

/// A key in a batch and the array that it is read from.
struct ArrayKey {
  std::string key;
  std::string array;
  std::string place;       ///< In the config: `keys/image`.
  bool is_listed = false;  ///< Of a list: the key is the array's name.
};

/// The parameter `keys`: a map from a key in a batch to an array's name (a map in it nests), or a
/// list of names, which then are the keys too. Empty when it is not given. Throws UsageError for
/// anything else, for a key that is there twice, and for `index`, which is each example's place in
/// the dataset.
std::optional<std::vector<ArrayKey>> read_array_keys(const Config& params);

/// Arrays side by side: row i of each belongs to example i. All const functions may be called by
/// several threads at once.
class ArrayTable {
 public:
  /// Of ragged examples, the key of their lengths ends with this.
  static constexpr const char* kLengths = "_lengths";

  /// An array of tensors [...] or texts.
  void add(std::string key, Hdf5Rows rows);
  /// A ragged one: example i is `values[offsets[i] : offsets[i + 1]]`.
  void add_ragged(std::string key, std::vector<int64_t> offsets, Hdf5Rows values);

  /// Reads arrays into memory, the smallest first, as long as all of them take at most `bytes`.
  void keep(double bytes);

  /// A ragged example is the tensor [length, ...] with its length, int64 [], under `<key>_lengths`.
  Example example(int64_t row) const;

  /// The same for several rows. Ragged examples become one tensor [B, longest, ...], filled up with
  /// zeros, with their lengths, int64 [B].
  void gather(std::span<const int64_t> rows, OrderedMap<at::Tensor>& tensors,
              OrderedMap<std::vector<std::string>>& texts) const;

  /// Takes the ragged values out of `examples` and puts them side by side as `gather` does.
  void collate_ragged(std::vector<Example>& examples, OrderedMap<at::Tensor>& tensors) const;

  /// The values of all rows, [N, ...], when they are in memory or [N]; else undefined.
  at::Tensor labels(std::string_view key) const;
  std::vector<std::string> label_keys() const;

 private:
  struct Column {
    std::string key;
    Hdf5Rows rows;
    std::vector<int64_t> offsets = {};  ///< Of a ragged one.

    /// [length, ...] of each.
    std::vector<at::Tensor> ragged(std::span<const int64_t> examples) const;
  };

  std::vector<Column> columns_;
};

}  // namespace stepop
