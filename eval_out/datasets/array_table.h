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
class Parameters;

/// The default of `cache_bytes`, the number of bytes of arrays that are kept in memory.
inline constexpr int64_t kArrayCacheBytes = 256'000'000;
void declare_cache_bytes(Parameters& p, int64_t& bytes);

/// A key in a batch and the array from which it is read.
struct ArrayKey {
  std::string key;
  std::string array;
  std::string place;       ///< The place in the config: `keys/image`.
  bool is_listed = false;  ///< The key comes from a list, so it is the array's name.
};

/// The parameter `keys`: a map from a key in a batch to an array's name (a map in it nests), or a
/// list of names, which then are the keys too. Empty when the parameter is missing. Throws
/// UsageError for anything else, for a key that occurs twice, and for the key `index`, which is
/// reserved for each example's place in the dataset.
std::optional<std::vector<ArrayKey>> read_array_keys(const Config& params);

/// Arrays side by side: row i of each belongs to example i. All const functions may be called by
/// several threads at once.
class ArrayTable {
 public:
  /// The suffix of the key for the lengths of ragged examples.
  static constexpr const char* kLengths = "_lengths";

  /// Adds an array of tensors [...] or texts.
  void add(std::string key, Hdf5Rows rows);
  /// Adds a ragged array: example i is `values[offsets[i] : offsets[i + 1]]`.
  void add_ragged(std::string key, std::vector<int64_t> offsets, Hdf5Rows values);

  /// Reads arrays into memory, the smallest first, as long as they take at most `bytes` together.
  void keep(double bytes);

  /// A ragged example is the tensor [length, ...] with its length, int64 [], under `<key>_lengths`.
  Example example(int64_t row) const;

  /// The same for several rows. Ragged examples become one tensor [B, longest, ...], padded with
  /// zeros, with their lengths, int64 [B].
  void gather(std::span<const int64_t> rows, OrderedMap<at::Tensor>& tensors,
              OrderedMap<std::vector<std::string>>& texts) const;

  /// Takes the ragged values out of `examples` and puts them side by side as `gather` does.
  void collate_ragged(std::vector<Example>& examples, OrderedMap<at::Tensor>& tensors) const;

  /// The values of all rows, [N, ...], if they are in memory or one number a row; else undefined.
  at::Tensor labels(std::string_view key) const;
  std::vector<std::string> label_keys() const;

 private:
  struct Column {
    std::string key;
    Hdf5Rows rows;
    std::vector<int64_t> offsets = {};  ///< The offsets of a ragged array.

    /// The values of each example, [length, ...].
    std::vector<at::Tensor> ragged(std::span<const int64_t> examples) const;
  };

  std::vector<Column> columns_;
};

}  // namespace stepop
