#pragma once

#include "runtime/tools/cli/command.h"

namespace stepop {

/// The flags of `stepop config`.
struct ConfigFlags {
  bool keys = false;
  bool paths = false;
  bool schema = false;

  void add_to(Flags& flags);
};

inline constexpr CommandInfo kConfigCommand = {
    .name = "config",
    .group = CommandGroup::kBegin,
    .operands = "-b base.yaml [--path/key value ...] [--keys | --schema]",
    .fewest = 0,
    .most = 0,
    .about =
        "print the resolved config; --keys: each key of it, of its components "
        "and of the runtime; --schema: a JSON Schema for editors",
    .takes = "base",
    .example =
        "stepop config -b configs/digits.yaml --optimizer/lr "
        "1e-3\nstepop config -b configs/digits.yaml --keys\nstepop "
        "config --schema > config.schema.json"};

/// `stepop config --paths`: prints the paths of all keys of the config, which a shell asks for at a
/// key press: nothing here needs LibTorch. Returns the exit code.
int print_config_paths(const Arguments& arguments);

}  // namespace stepop
