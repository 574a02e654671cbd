#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/config.h"

namespace stepop {

class Parameters;

/// The names of a reader's classes, such as those of its folders.
struct FoundClasses {
  std::vector<std::string> names;  ///< In the order that gives them numbers.
  bool are_of_training = false;    ///< A fit has taken them from the split train.
  bool has_unknown = false;        ///< A name without a number gets the next one.
};

/// The numbers of the classes under one key of the examples, which are the same in every split: the
/// training has given them. Its readers write their names into the config, `class_names: {class:
/// [ant, bee, cat]}`, from where each other split, a resume, an evaluation and a prediction take
/// them; so a split without ants has bees of number 1. Names that differ in Unicode's normal form
/// alone are one class. The key is that of a batch: `left/class` for a reader below the prefix
/// `left` of a Zip.
///
/// A reader of names makes one of these in its constructor. In the split train it adds its names,
/// in their order, to those that are there; names that come from a saved or a user's config are
/// all there is. A reader elsewhere builds `datasets/train` if the config does not have the names
/// yet. Without a split train, or where it has no such names, the reader's own names count.
class ClassNumbers {
 public:
  /// `params` is the reader's part of the config, `key` that of its examples. Throws UsageError
  /// when `class_names/<key>` is not a list of different texts.
  ClassNumbers(const Config& params, const std::string& key, FoundClasses found);

  /// The number of `name`; none for a name that is no class.
  std::optional<int64_t> find(const std::string& name) const;

  /// The names in the order of their numbers.
  const std::vector<std::string>& names() const { return names_; }

  /// Whether other names than the reader's own count.
  bool are_given() const { return are_given_; }

  /// For errors about a name without a number: `a class of the training: ant, bee, cat
  /// (class_names/class; with "unknown: id" any other has the number 3)`.
  std::string expected() const;

  /// For `Dataset::notice`: which classes none of `numbers`, int64 [N], has, which names look
  /// alike, and where the numbers differ from those that the reader's own names would have had.
  /// Empty when there is nothing to say. Undefined `numbers` leave out the first.
  std::string notice(const at::Tensor& numbers) const;

 private:
  void take(const Config& root, const std::string& place, bool is_training);
  void add(const Config& root, const std::string& place);
  void build_training(const Config& root, const std::string& place);

  std::vector<std::string> names_;
  std::map<std::string, int64_t, std::less<>> numbers_;  ///< By normal form.
  std::vector<std::string> own_;
  bool has_unknown_;
  bool are_given_ = false;
  std::string origin_;  ///< Where the names stand, for messages.
  std::string failure_;
};

/// For readers whose files have both numbers and the names of these: the numbers that ClassNumbers
/// has for the names.
class ClassRenumbering {
 public:
  /// `file` says in messages what has the names, in the order of its numbers.
  ClassRenumbering(const Config& params, const std::string& key, std::vector<std::string> names,
                   std::string file, bool has_unknown = false);

  /// Whether the names are others altogether than the training's, as those of people may be.
  bool are_others() const { return are_others_; }

  /// Whether a number of the file is another one here, or none.
  bool is_needed() const { return is_needed_; }

  /// Throws Error for the number of a name that is no class. A number without a name, such as -100,
  /// stays.
  int64_t apply(int64_t number) const;
  /// The same for whole numbers of any shape and type.
  at::Tensor apply(const at::Tensor& numbers) const;

  /// As that of ClassNumbers, with the file.
  std::string notice(const at::Tensor& numbers) const;

 private:
  std::string file_;
  std::vector<std::string> file_names_;
  ClassNumbers classes_;
  std::vector<std::optional<int64_t>> numbers_;
  bool is_needed_ = false;
  bool are_others_ = true;
};

/// The parameter `unknown`: whether a name that is no class gets the number behind theirs, `id`;
/// by default it is an `error`.
bool read_unknown_classes(const Config& params);
/// Declares it.
void add_unknown_classes(Parameters& p, bool& has_unknown, std::string_view about);

/// The names that `class_names` of a config has for a key; none when it has none. `config` may be
/// the part of a reader, which a Zip around it gives a prefix.
std::vector<std::string> class_names_of(const Config& config, const std::string& key);

/// For `Dataset::notice` of a reader that has whole numbers under `key` and no names for them: that
/// they are taken as they are, where the training has numbered names of this key. A warning where
/// these names are whole numbers themselves, so that 10 may be meant as the class "10". `advice`
/// says how the reader would read names.
std::string plain_numbers_notice(const Config& params, const std::string& key,
                                 const std::string& advice = "");

/// The same for all keys that have names.
OrderedMap<std::vector<std::string>> all_class_names(const Config& config);

}  // namespace stepop
