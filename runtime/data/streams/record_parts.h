#pragma once

#include <string>
#include <string_view>

#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"
#include "runtime/data/datasets/image_reader.h"

namespace stepop {

/// Makes examples of the parts of records, by their extensions:
///
/// | extension | key | value |
/// |---|---|---|
/// | png, jpg, jpeg | image | float [C, H, W] in [-1, 1] |
/// | cls | class | int64 [] |
/// | txt | text | a text |
/// | npy | array | a tensor of its shape and type |
/// | json | json/... | numbers, flags, lists of numbers and texts of the map, by their keys |
///
/// The text `key` is the record's own. What stands before the last dot names the key instead:
/// `mask.png` is `mask`. The parameter `keys` names keys, and those parts alone are read: `{png:
/// image, json: about}`.
class RecordParts {
 public:
  explicit RecordParts(const Config& params);

  /// Whether parts with that extension become something of an example.
  bool wants(const std::string& extension) const;

  /// Throws Error with the part's extension.
  Example decode(const OrderedMap<std::string>& parts) const;

  const ImageReader& images() const { return images_; }

 private:
  std::string key_of(const std::string& extension) const;

  OrderedMap<std::string> keys_;  ///< Extension -> key; empty: by what the extension is.
  ImageReader images_;
};

}  // namespace stepop
