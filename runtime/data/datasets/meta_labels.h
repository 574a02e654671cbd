#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/formats/stored_array.h"
#include "runtime/core/value/value.h"

namespace stepop {

/// The part of a meta.yaml with the names of classes: a list in the order of their numbers by key.
inline constexpr const char* kMetaClassNames = "class_names";

/// An array with a row for each example, in a file `labels/<key>-*-<shape>-*-<dtype>.npy` or
/// `labels/<key>:<loader>-*-...`. Despite the extension, these files hold only the array's bytes,
/// as numpy.memmap writes them.
struct MetaLabel {
  std::string key;     ///< Folders below `labels` are part of the key: `a/b`.
  std::string loader;  ///< The loader that turns a row into a value; if empty, the row is the
                       ///< value.
  StoredArray array;
};

/// A folder with a `meta.yaml`, as edflow's MetaDataset reads it.
struct MetaFolder {
  std::string path;
  Value meta;                     ///< What meta.yaml says.
  std::vector<MetaLabel> labels;  ///< Sorted by key; one for each.
};

/// Throws Error with the path for a folder without meta.yaml or labels, for a file with an invalid
/// name or a size that differs from its name, and for labels of different lengths.
MetaFolder read_meta_folder(const std::string& path);

/// The file name of a label: `kps-*-100x18x2-*-float32.npy`.
std::string meta_label_file(const std::string& key, const std::vector<int64_t>& shape,
                            const std::string& dtype);

}  // namespace stepop
