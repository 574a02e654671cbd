#pragma once

#include <string>

#include "tests/cli/command.h"

namespace stepop {

/// Runs a line with a cache of compiled code in the folder, so that no other test's is there.
inline CommandResult run_with_cache(const ScratchFolder& folder, const std::string& line) {
  return run_in(folder, "export STEPOP_CACHE='" + folder.path("cache") + "'\n" + line);
}

/// Makes `name.cpp`, `name.yaml` and what they need in the folder by `stepop new`, from a template.
inline void make_new(const ScratchFolder& folder, const std::string& name,
                     const std::string& kind = "regression") {
  const CommandResult made =
      run_in(folder, "stepop new " + name + " --template " + kind + " && rm " + name +
                         "/README.md && mv " + name + "/* . && rmdir " + name);
  if (made.exit_code != 0) throw std::runtime_error(made.err);
}

/// Makes a training of a template short.
inline const std::string kShort =
    " --datasets/train/size 128 --datasets/validation/size 64 --batch_size 32"
    " --num_epochs 2";

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// One source, whose train split is the ready-made one, with `code` in it.
inline void write_source(const ScratchFolder& folder, const std::string& code) {
  folder.write("one.cpp", "#include <stepop/stepop.h>\n" + code);
  folder.write("one.yaml",
               "code: one.cpp\niterator: Classifier\nmodel: LeNet\nnum_steps: 1\nbatch_size: 4\n"
               "optimizer: {class: SGD, lr: 0.1}\n"
               "datasets: {train: {class: Synthetic, size: 8}}\nlog_ops: [train/log_op]\n");
}

}  // namespace stepop
