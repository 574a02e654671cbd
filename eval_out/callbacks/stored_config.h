#pragma once

#include <string>
#include <vector>

#include "eval_out/read/eval_reader.h"
#include "runtime/config/config.h"
#include "runtime/config/resolve.h"

namespace stepop {

/// The config that is stored in a file of outputs. Throws UsageError when there is none.
Value read_stored_config(const EvalFile& file);

/// The config to run callbacks with over a file of outputs: the one that is stored in it, with
/// `eval_hook/eval_callbacks` cut down to those that are asked for.
///
/// `callbacks` has one text each: a name of the stored config (`accuracy`), which brings its
/// parameters; a registered callback (`confusion_matrix`); `my_name:my_callback`; a Python script
/// (`./my_report.py`, with the name `my_report`). Without any, those of the stored config.
///
/// `overrides` change parameters, `confusion_matrix/normalize`, and other keys of the stored
/// config, such as `datasets/validation/path` of a dataset that moved.
///
/// Throws UsageError for no callback at all, the same name twice, an unknown callback or script,
/// and a key that nobody reads.
Config stored_config(const EvalFile& file, const std::vector<std::string>& callbacks,
                     std::vector<Override> overrides);

}  // namespace stepop
