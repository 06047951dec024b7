// polyphony completion: a script that completes commands, options and files in bash and zsh. The
// words come from the program's own tables at the time of completion: `polyphony --list-commands`,
// `polyphony COMMAND --list-options`.
#include <iostream>

#include "sim/cli/command.h"

namespace polyphony::sim {
namespace {

constexpr const char* kBash = R"(_polyphony() {
  local word=${COMP_WORDS[COMP_CWORD]} words=
  if [[ $COMP_CWORD == 1 ]]; then
    words=$(polyphony --list-commands 2> /dev/null)
  elif [[ $word == -* ]]; then
    words=$(polyphony "${COMP_WORDS[1]}" --list-options 2> /dev/null)
  fi
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _polyphony polyphony
)";

}  // namespace

int completion_command(int argc, char** argv) {
  Arguments args(
      "completion", "Prints a script that completes commands, options and files.", "[bash|zsh]",
      "  polyphony completion bash > ~/.local/share/bash-completion/completions/polyphony\n"
      "  source <(polyphony completion zsh)");
  args.add()("shell", "bash or zsh", cxxopts::value<std::string>()->default_value("bash"));
  args.positional({"shell"});
  if (args.parse(argc, argv)) return 0;
  const std::string shell = args.text("shell");
  if (shell != "bash" && shell != "zsh")
    throw InputError("polyphony completion", "", "\"" + shell + "\" must be bash or zsh",
                     "other shells are not supported");
  if (shell == "zsh") std::cout << "autoload -U +X bashcompinit && bashcompinit\n";
  std::cout << kBash;
  return 0;
}

}  // namespace polyphony::sim
