#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/tools/cli/command.h"
#include "runtime/tools/cli/help.h"

namespace stepop {
namespace {

/// Words between @ are replaced. The keys come from the files of -b, whose code is not loaded: a
/// key press must not run the user's code.
constexpr std::string_view kBash = R"sh(_stepop() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} i bases=() keys=
  COMPREPLY=()
  case $before in
@VALUES@    -p | --project) COMPREPLY=($(compgen -d -- "$word")); return ;;
    -n | --name) return ;;
  esac
  if [[ $word == --* ]]; then
    for ((i = 1; i < COMP_CWORD; ++i)); do
      [[ ${COMP_WORDS[i]} == -b || ${COMP_WORDS[i]} == --base ]] || continue
      while ((i + 1 < COMP_CWORD)) && [[ ${COMP_WORDS[i+1]} != -* ]]; do bases+=("${COMP_WORDS[++i]}"); done
    done
    ((${#bases[@]})) && keys=$("${COMP_WORDS[0]}" config --paths -b "${bases[@]}" 2>/dev/null |
      sed -n 's/^[A-Za-z0-9_./-]*$/--&/p')
    COMPREPLY=($(compgen -W "@FLAGS@ $keys" -- "$word"))
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "@LETTERS@" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
    ((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W "@COMMANDS@" -- "$word"))
  fi
}
complete -o filenames -F _stepop stepop
)sh";

void put_in(std::string& text, const std::string& mark, const std::string& value) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
    text.replace(at, mark.size(), value);
  }
}

std::string script() {
  std::string names;
  std::vector<Flag> flags;
  for (const CommandInfo* command : commands()) {
    names += (names.empty() ? "" : " ") + std::string(command->name);
    const std::vector<Flag> own = own_flags(*command);
    flags.insert(flags.end(), own.begin(), own.end());
  }
  Arguments unused;
  const Flags common = common_flags(unused);
  flags.insert(flags.end(), common.all().begin(), common.all().end());
  std::string long_flags;
  std::string letters;
  for (const Flag& flag : flags) {
    if (long_flags.find("--" + flag.name + " ") == std::string::npos)
      long_flags += "--" + flag.name + " ";
    const std::string letter = std::string("-") + flag.letter + " ";
    if (flag.letter != 0 && letters.find(letter) == std::string::npos) letters += letter;
  }
  std::string text(kBash);
  put_in(text, "@COMMANDS@", names);
  put_in(text, "@FLAGS@", long_flags);
  put_in(text, "@LETTERS@", letters);
  put_in(text, "@VALUES@",
         "    -l | --log_level) COMPREPLY=($(compgen -W \"debug info warn critical\" -- "
         "\"$word\")); return ;;\n"
         "    --template) COMPREPLY=($(compgen -W \"classifier regression table autoencoder gan "
         "loss_model language_model\" "
         "-- \"$word\")); return ;;\n"
         "    --sort) COMPREPLY=($(compgen -W \"name state step last best age\" -- \"$word\")); "
         "return ;;\n"
         "    --state) COMPREPLY=($(compgen -W \"running ended stopped failed killed unknown\" -- "
         "\"$word\")); return ;;\n"
         "    --logs) COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n");
  return text;
}

int completion_command(const Arguments& arguments, const NoFlags& /*own*/) {
  const std::string& shell = arguments.operands.front();
  if (shell != "bash" && shell != "zsh") {
    throw UsageError(fmt::format("stepop completion {}: expected bash or zsh", shell));
  }
  if (shell == "zsh")
    fmt::print(
        "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n");
  fmt::print("{}", script());
  return 0;
}

STEPOP_REGISTER_COMMAND(completion_command, NoFlags,
                        {.name = "completion",
                         .group = CommandGroup::kShell,
                         .operands = "bash|zsh",
                         .fewest = 1,
                         .most = 1,
                         .about = "print what completes commands, flags, files and keys",
                         .takes = "",
                         .example = "eval \"$(stepop completion bash)\""});

}  // namespace

}  // namespace stepop
