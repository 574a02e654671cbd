#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"
#include "runtime/data/datasets/left_out.h"

namespace stepop {

/// The files at any depth below `folder`/`below` with one of these endings (`.png`) in upper or
/// lower case, relative to `folder` and sorted; the others, and links that lead nowhere, are added
/// to `left_out`. Hidden files and folders are passed over. Throws std::filesystem's error for a
/// folder that cannot be listed.
std::vector<std::string> list_files(const std::string& folder, const std::string& below,
                                    const std::vector<std::string_view>& endings,
                                    LeftOut& left_out);

/// Which folders are read, for a dataset's `Params`.
struct ClassFolders {
  std::optional<std::vector<std::string>> classes;
  bool has_unknown = false;

  /// `files`: what is in them, in the plural.
  void declare(Parameters& p, std::string_view files);
};

/// What a dataset reads.
struct FileKind {
  std::vector<std::string_view> endings;
  std::string_view file;     ///< `PNG or JPEG image`
  std::string_view plural;   ///< `images`
  std::string_view pattern;  ///< `NAME.png, .jpg or .jpeg`
};

/// The files in a folder that has one folder for each class.
struct ClassFiles {
  std::vector<std::string> paths;  ///< Relative to the folder.
  at::Tensor classes;              ///< int64 [files]; undefined without classes.
  std::string notice;              ///< For `Dataset::notice`.
  LeftOut left_out = {};           ///< The other files of the folder.
};

/// Lists `folder`. The names of the class folders have the numbers of ClassNumbers for the key
/// `class`, where the training's are those of `classes`, by default of all folders,
/// sorted. With `classes` only these folders are read; if they are empty there are no classes, and
/// files at any depth are taken. With `has_unknown` a folder that is no class has the number behind
/// the last one. Throws Error when there are no files, when a class occurs twice or has no folder,
/// for a folder that is no class of the training, and in the training for a folder without files,
/// unless `classes` names it.
ClassFiles list_class_files(const Config& params, const std::string& folder,
                            const ClassFolders& folders, const FileKind& kind);

}  // namespace stepop
