// A program of the build: writes made_texts.cpp, the outputs that are the same in each run.
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "runtime/tools/cli/command.h"
#include "runtime/tools/cli/command_line.h"
#include "runtime/tools/cli/help.h"
#include "runtime/tools/components/config_schema.h"

namespace {

/// Writes the words of a command line, and what `print` prints for it.
template <class Print>
void write_text(const std::vector<std::string>& words, const Print& print) {
  std::printf("    {\"");
  for (const auto& word : words) std::printf("%s\\n", word.c_str());
  std::printf("\", R\"~(");
  print();
  std::printf(")~\"},\n");
}

void write_text(const std::vector<std::string>& words, const std::string& text) {
  write_text(words, [&] { std::fputs(text.c_str(), stdout); });
}

}  // namespace

int main() {
  std::printf(
      "#include \"runtime/tools/front/made_texts.h\"\n\n"
      "const stepop::MadeText stepop::kMadeTexts[] = {\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"-h"}, {"--help"}, {"help"}}) {
    write_text(words, stepop::help_text());
  }
  write_text({"--version"}, stepop::version_text());
  for (const stepop::CommandInfo* command : stepop::commands()) {
    const std::string text = stepop::help_text(*command);
    write_text({command->name, "-h"}, text);
    write_text({command->name, "--help"}, text);
    write_text({"help", command->name}, text);
  }
  for (const char* shell : {"bash", "zsh"}) {
    const std::vector<std::string> words = {"completion", shell};
    const stepop::CommandLine line = stepop::parse_command_line(words);
    write_text(words, [&] { line.command->run(line.arguments); });
  }
  std::printf("    {nullptr, nullptr}};\n\n");
  const std::set<std::string> components = stepop::registered_components();
  std::printf("const char* const stepop::kMadeComponents =");
  for (const auto& component : components) std::printf("\n    \"%s\\n\"", component.c_str());
  std::printf(";\n\nconst char* const stepop::kMadeSchema = R\"~(%s)~\";\n",
              stepop::config_schema(/*is_strict=*/false, components).c_str());
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? 0 : 1;
}
