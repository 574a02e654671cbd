#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"
#include "runtime/data/class_numbers.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/streams/clip_commands.h"

namespace stepop {

/// Makes examples from the parts of records, by their extensions:
///
/// | extension | key | value | |---|---|---| | png, jpg, jpeg, webp | image | float [C, H, W] in
/// [-1, 1] | | cls | class | int64 [] | | txt | text | a text | | npy | array | a tensor of its
/// shape and type | | json | json/... | numbers, flags, lists of numbers and texts of the map, by
/// their keys
/// |
///
/// The text `key` is the record's key. In an extension with a dot, the text before the last dot is
/// the example's key instead: `mask.png` gives `mask`. The parameter `keys` names the keys, and
/// then only these parts are read: `{png: image, json: about}`.
class RecordParts {
 public:
  struct Params {
    std::optional<OrderedMap<std::string>> keys;  ///< By extension.
    ClipCommands::Params clips;
    bool has_unknown = false;
    ImageOptions images;

    /// All but the clips' `timeout`.
    void declare(Parameters& p);
  };

  RecordParts(const Params& params, const Config& config);

  /// From now on the numbers of `.cls` stand for these names, which `file` has.
  void name_classes(const Config& params, std::vector<std::string> names, std::string file);

  /// About these names, or about numbers without names where the training has some.
  std::string class_notice(const Config& params) const;

  /// What parts may be.
  enum class Which {
    kAll,
    kDescriptions,  ///< Neither pictures nor videos: what is decoded at once.
  };

  /// Whether parts with this extension are used in an example.
  bool wants(const std::string& extension, Which which = Which::kAll) const;

  /// Whether parts with this extension are used as pictures.
  bool is_picture(const std::string& extension) const;

  /// Whether parts with this extension have a kind, or `keys` leaves them out by purpose.
  bool can_read(const std::string& extension) const {
    return !keys_.empty() || kind_of(extension) != nullptr;
  }

  /// Throws Error with the part's extension.
  Example decode(const OrderedMap<std::string>& parts, Which which = Which::kAll) const;

  const ImageReader& images() const { return images_; }

 private:
  struct Kind;

  const Kind* kind_of(std::string_view extension) const;
  std::string key_of(const std::string& extension) const;
  void add(const std::string& key, const std::string& extension, const std::string& bytes,
           Example& example) const;

  OrderedMap<std::string> keys_;  ///< Extension -> key; when empty, the table above gives the keys.
  std::optional<ClassRenumbering> classes_;
  bool has_unknown_;
  ImageReader images_;
  ClipCommands clips_;
};

}  // namespace stepop
