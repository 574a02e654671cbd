#include "tests/cli/page.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <regex>

#include "tests/cli/code_run.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"

namespace stepop {
namespace {

/// A line with its numbers taken out.
struct PageLine {
  std::string words;
  std::vector<std::string> numbers;
};

PageLine without_numbers(const std::string& line) {
  static const std::vector<std::pair<std::regex, std::string>> kRules = {
      {std::regex(R"(\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(\.\d+)?)"), "<time>"},
      {std::regex(R"([\d.,]+ (us|ms|s|min|kB|MB|GB|examples/s)\b)"), "<amount>"},
      {std::regex(R"(ETA [\d:]+)"), "ETA <time>"},
      {std::regex(R"(process +\d+ on .*)"), "process <process>"},
      {std::regex(R"(^checkpoint: .*)"), "checkpoint: <file>"},
      {std::regex("  +"), "  "},
      {std::regex(" +$"), ""},
  };
  std::string rest = line;
  for (const auto& [pattern, with] : kRules) rest = std::regex_replace(rest, pattern, with);
  static const std::regex kNumber(R"(-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?)");
  PageLine found;
  for (std::sregex_iterator at(rest.begin(), rest.end(), kNumber), end; at != end; ++at) {
    found.numbers.push_back(at->str());
  }
  found.words = std::regex_replace(rest, kNumber, "#");
  return found;
}

/// Another processor rounds otherwise: the accuracy of a first epoch differs by a twentieth.
bool is_near(const std::string& shown, const std::string& printed) {
  if (shown == printed) return true;
  if ((shown + printed).find_first_of(".e") == std::string::npos) return false;
  const double a = std::stod(shown);
  const double b = std::stod(printed);
  return std::abs(a - b) <= std::max(0.02, 0.1 * std::abs(a));
}

bool is_same_line(const std::string& shown, const std::string& printed) {
  if (shown == printed) return true;
  const size_t rest = shown.find("...");
  const bool is_word = !shown.empty() && std::isalpha(static_cast<unsigned char>(shown[0])) != 0;
  if (is_word && !printed.starts_with(shown[0])) return false;  // most lines, quickly
  const PageLine a = without_numbers(shown.substr(0, rest));
  const PageLine b = without_numbers(printed);
  if (rest == std::string::npos ? a.words != b.words : !b.words.starts_with(a.words)) return false;
  return a.numbers.size() <= b.numbers.size() &&
         std::equal(a.numbers.begin(), a.numbers.end(), b.numbers.begin(), is_near);
}

/// Whether the lines from `i` of what is shown match those from `j` of what was printed. `furthest`
/// becomes the first printed line that no line of the page fits.
bool matches(const std::vector<std::string>& shown, size_t i,
             const std::vector<std::string>& printed, size_t j, size_t& furthest) {
  for (;; ++i, ++j) {
    furthest = std::max(furthest, j);
    if (i == shown.size()) return j == printed.size();
    if (shown[i] == "...") break;
    if (j == printed.size() || !is_same_line(shown[i], printed[j])) return false;
  }
  for (; j <= printed.size(); ++j) {
    if (matches(shown, i + 1, printed, j, furthest)) return true;
  }
  return false;
}

const std::string kBegins = "<<<begins>>>\n";
const std::string kEnds = "<<<ends>>>";

/// Makes a change in a file: its lines that stay and go must be there once.
constexpr const char* kChange = R"(
import sys
lines = open(sys.argv[2]).read().splitlines()
old, new = ("".join(line[1:] + "\n" for line in lines if line[:1] != other) for other in "+-")
text = open(sys.argv[1]).read()
assert text.count(old) == 1, f"{sys.argv[1]}: {text.count(old)} times:\n{old}"
open(sys.argv[1], "w").write(text.replace(old, new))
)";

}  // namespace

std::vector<PageStep> page_steps(const std::string& page) {
  std::vector<PageStep> steps;
  bool is_block = false;
  std::string language;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with("```")) {
      is_block = !is_block;
      if (!is_block) continue;
      const size_t gap = line.find(' ');
      language = line.substr(3, gap == std::string::npos ? gap : gap - 3);
      if (gap == std::string::npos) continue;
      steps.push_back({language == "diff" ? "change" : "file", line.substr(gap + 1), ""});
      language = "file";
    } else if (is_block && language == "file") {
      steps.back().text += line + "\n";
    } else if (is_block && language == "console") {
      if (line.starts_with("$ ")) {
        steps.push_back({"command", line.substr(2), ""});
      } else if (steps.back().text.empty() && steps.back().subject.ends_with("\\")) {
        steps.back().subject += "\n" + line;
      } else {
        steps.back().text += line + "\n";
      }
    }
  }
  return steps;
}

std::string page_difference(const std::string& shown, const std::string& printed) {
  auto lines = lines_of(printed);
  // No output of a command is the shell's word about a job that was killed, and one about what else
  // this machine does.
  std::erase_if(lines, [](const std::string& line) {
    return (contains(line, ".script: line ") && contains(line, " Killed ")) ||
           line.starts_with("warning: the machine is busy: ");
  });
  size_t furthest = 0;
  if (matches(lines_of(shown), 0, lines, 0, furthest)) return "";
  return "line " + std::to_string(furthest + 1) +
         " of what is printed: " + (furthest < lines.size() ? lines[furthest] : "(its end)");
}

void follow_page(const ScratchFolder& folder, const std::string& path, const std::string& before) {
  const auto steps = page_steps(read_bytes(STEPOP_SOURCE_DIR "/" + path));
  folder.write(".page/change.py", kChange);
  std::string script = "unset -f stepop; export PATH='" STEPOP_BINARY_DIR "':'" STEPOP_SOURCE_DIR
                       "/.venv/bin':$PATH PYTHONPATH='" STEPOP_SOURCE_DIR
                       "/eval_out/python' OMP_NUM_THREADS=2 PYTHONPYCACHEPREFIX='" STEPOP_BINARY_DIR
                       "/pycache'\n"
                       "page=$PWD/.page; exec 2>&1\n" +
                       before + "\n";
  std::vector<PageStep> commands;
  int blocks = 0;
  for (const PageStep& step : steps) {
    if (step.kind == "command") {
      commands.push_back(step);
      script += "echo '<<<begins>>>'\n" + step.subject + "\necho '" + kEnds + "'$?\n";
      continue;
    }
    const std::string number = std::to_string(++blocks);
    folder.write(".page/" + number, step.text);
    const std::string name = "'" + step.subject + "'";
    script += step.kind == "file"
                  ? "mkdir -p \"$(dirname " + name + ")\" && cp $page/" + number + " " + name + "\n"
                  : "python3 $page/change.py " + name + " $page/" + number + " || exit\n";
  }
  REQUIRE(commands.size() > 3);
  const std::string printed = run_with_cache(folder, script).out;
  size_t at = 0;
  for (const PageStep& command : commands) {
    const size_t begin = printed.find(kBegins, at);
    REQUIRE_MESSAGE(begin != std::string::npos, path, ": before ", command.subject, ":\n",
                    printed.substr(at));
    at = printed.find(kEnds, begin);
    REQUIRE_MESSAGE(at != std::string::npos, path, ": in ", command.subject, ":\n",
                    printed.substr(begin));
    const size_t text_begin = begin + kBegins.size();
    const std::string text = printed.substr(text_begin, at - text_begin);
    const bool is_error =
        command.text.starts_with("stepop: ") || contains(command.text, "\nstepop: ");
    INFO(path, ": $ ", command.subject, "\n", text);
    CHECK(page_difference(command.text, text) == "");
    CHECK((printed[at + kEnds.size()] != '0') == is_error);
  }
}

}  // namespace stepop
