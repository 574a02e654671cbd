#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/core/base/nearest.h"
#include "runtime/core/base/regular_expression.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/code/build_settings.h"
#include "runtime/tools/components/config_schema.h"
#include "runtime/tools/migrate/from_dlas.h"
#include "runtime/tools/migrate/from_edflow.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

struct NewFlags {
  std::optional<std::string> kind;
  bool project = false;
  std::vector<std::string> from_edflow;
  std::optional<std::string> from_dlas;

  void add_to(Flags& flags) {
    flags.add("template", kind,
              "classifier (default), regression, table, autoencoder, gan, loss_model or "
              "language_model");
    flags.add("project", project, "a CMake project with src/, configs/ and tests/");
    flags.add("from-edflow", from_edflow, "the configs of an edflow project, which are translated",
              Flag::Takes::kValues);
    flags.add("from-dlas", from_dlas,
              "the config of a DL-Art-School training, which is translated");
  }
};

/// The model's names in the templates, for files and in code.
constexpr const char* kFileName = "my_model";
constexpr const char* kClassName = "MyModel";
constexpr const char* kSchemaFile = "config.schema.json";  // for editors
constexpr const char* kProject = "project";  // the folder of the files that only a project has

// Names that cannot be classes: macros of the system and of LibTorch.
constexpr std::array kMacros = {"NULL", "EOF", "NAN", "INFINITY", "BUFSIZ", "LOG", "CHECK"};
// Target names that CMake reserves, and our own library.
constexpr std::array kTargets = {"all",     "clean",         "depend", "edit_cache",
                                 "help",    "install",       "test",   "preinstall",
                                 "package", "rebuild_cache", "stepop", "package_source"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_of_name(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }

/// A valid name like `name`.
std::string proposed_name(const std::string& name) {
  std::string proposal;
  for (const char c : name) {
    if (is_of_name(c) && c != '_') {
      proposal += c;
    } else if (!proposal.empty() && proposal.back() != '_') {
      proposal += '_';
    }
  }
  if (proposal.ends_with('_')) proposal.pop_back();
  if (proposal.empty()) return kFileName;
  return is_letter(proposal[0]) && proposal != name ? proposal : "my_" + proposal;
}

[[noreturn]] void refuse_name(const std::string& name, const std::string& why) {
  throw UsageError(
      fmt::format("stepop new: \"{}\" {}; try \"{}\"", name, why, proposed_name(name)));
}

/// Checks a name of files, such as `denoiser` or `my_net`; the class is `Denoiser` or `MyNet`.
void check_name(const std::string& name, bool is_project) {
  if (name.empty() || !is_letter(name[0]) || !std::ranges::all_of(name, is_of_name)) {
    refuse_name(name,
                "cannot become the name of a class, which has English letters, digits and _, and "
                "begins with a letter");
  }
  if (std::ranges::find(kMacros, name) != kMacros.end()) {
    refuse_name(name, "is a macro, which cannot be the name of a class");
  }
  if (is_project && std::ranges::find(kTargets, name) != kTargets.end()) {
    refuse_name(name, "cannot become a target of CMake, which uses this name itself");
  }
}

std::string class_name(const std::string& name) {
  std::string text;
  bool is_first = true;
  for (const char c : name) {
    if (c != '_')
      text += is_first ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    is_first = c == '_';
  }
  return text;
}

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// Checks a source's classes: a class must not have the name of its own base class, whose
/// constructor it could not call, or of an existing component.
void check_classes(const std::string& source, const std::string& name) {
  static const RegularExpression kClass(R"(^class (\w+) : public stepop::(\w+))");
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) {
    const auto match = kClass.groups_in(line);
    if (!match) continue;
    const std::string& made = match->at(1);
    if (made == match->at(2)) {
      refuse_name(name, fmt::format("would make a class {0} of the class stepop::{0}", made));
    }
    for (const std::string& known : registered_components()) {  // `dataset:Synthetic`
      const size_t colon = known.find(':');
      if (known.substr(colon + 1) != made) continue;
      refuse_name(name, fmt::format("would make a class {}, and stepop has the {} {} already", made,
                                    known.substr(0, colon), made));
    }
  }
}

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(build_settings().templates, none)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name != kProject) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void check_template(const std::string& name) {
  const auto known = template_names();
  if (known.empty()) {
    throw Error(
        fmt::format("no templates in {}: install stepop again", build_settings().templates));
  }
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  std::string list;
  for (const auto& one : sorted_by_distance(name, known)) list += (list.empty() ? "" : ", ") + one;
  throw UsageError(fmt::format("--template {}: there are {}", name, list));
}

/// The path of a file: in a project, sources, configs, and what these name have their own folders.
std::string place(const std::string& file, bool is_project) {
  if (!is_project) return file;
  const auto extension = fs::path(file).extension();
  if (extension == ".cpp") return "src/" + file;
  for (const char* of_configs : {".yaml", ".csv", ".txt", ".json"}) {
    if (extension == of_configs) return "configs/" + file;
  }
  return file;
}

/// Turns the lines of a text into comments.
std::string commented(const std::string& text) {
  std::string comment;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1);
    comment += "# " + text.substr(at, end + 1 - at);
    at = end + 1;
  }
  return comment;
}

/// A config of another program, to be translated.
struct Source {
  std::string files;
  std::string program;  ///< `edflow`
  TranslatedConfig made;
};

/// The config of `--from-edflow` or `--from-dlas`, if any.
std::optional<Source> read_source(const NewFlags& own, const std::string& name) {
  if (!own.from_edflow.empty() && own.from_dlas) {
    throw UsageError("stepop new: give --from-edflow or --from-dlas, found both");
  }
  if (!own.from_edflow.empty()) {
    // As in edflow, a later file replaces whole keys of earlier files.
    Value::Map merged;
    std::string names;
    for (const auto& file : own.from_edflow) {
      const Value read = read_yaml_file(file);
      for (const auto& [key, value] : read.as_map()) merged.set(key, value);
      names += (names.empty() ? "" : ", ") + fs::path(file).filename().string();
    }
    return Source{names, "edflow", translate_edflow(Value(std::move(merged)), class_name(name))};
  }
  if (own.from_dlas) {
    return Source{fs::path(*own.from_dlas).filename().string(), "DL-Art-School",
                  translate_dlas(read_yaml_file(*own.from_dlas))};
  }
  return std::nullopt;
}

/// A template's code, adapted to the data of a translated config: without the dataset that no split
/// uses, and with pictures instead of points.
std::string fitted(std::string code, const TranslatedConfig& made) {
  if (!made.has_own_data) {
    const size_t begin = code.find("// --- The data:");
    const size_t end = code.find("// --- The network:");
    if (begin < end && end != std::string::npos) code.erase(begin, end - begin);
  }
  return made.has_images
             ? replaced(std::move(code), "batch[\"point\"]", "batch[\"image\"].flatten(1)")
             : code;
}

/// The text of the config file.
std::string config_text(const Source& source, const std::string& name) {
  const TranslatedConfig& made = source.made;
  std::string text = made.needs_code ? fmt::format("code: [{}.cpp]\n", name) : "";
  text += fmt::format("# From {}'s {}. What became of its keys, where they changed:\n",
                      source.program, source.files);
  for (const auto& [key, what] : made.notes) text += fmt::format("#   {}: {}\n", key, what);
  text += "\n" + to_yaml(made.config);
  if (!made.own.as_map().empty()) {
    text +=
        "\n# Your own keys. A key that nothing reads is an error: each comes back when your "
        "iterator reads it.\n" +
        commented(to_yaml(made.own));
  }
  return text;
}

/// The README of a config that trains nothing: one command in the place of those that train.
std::string evaluating(const std::string& text, const std::string& name) {
  const size_t begin = text.find("```\n") + 4;
  const size_t end = text.find("```", begin);
  return text.substr(0, begin) +
         fmt::format(
             "stepop -n first -b {0}.yaml                  # evaluates the weights of "
             "init_from: no step trains\n"
             "stepop list -b {0}.yaml                       # every component that a config "
             "can name\n",
             name) +
         text.substr(end);
}

/// The files of a new folder.
class NewFiles {
 public:
  /// `source` may be null.
  NewFiles(std::string name, bool is_project, const Source* source)
      : name_(std::move(name)), is_project_(is_project), source_(source) {}

  void gather(const std::string& kind) {
    for (const auto& entry : fs::directory_iterator(templates_ / kind)) {
      const auto extension = entry.path().extension();
      const bool is_config = extension == ".yaml" || extension == ".csv";  // a config and its data
      if (source_ != nullptr && (is_config || !source_->made.needs_code)) continue;
      add(entry.path(), place(entry.path().filename().string(), is_project_));
    }
    if (source_ != nullptr) {
      files_.emplace_back(place(name_ + ".yaml", is_project_), config_text(*source_, name_));
    }
    if (is_project_) {
      add_project();
    } else {
      add(templates_ / "README.md", "README.md");
      if (source_ != nullptr && !source_->made.needs_code) fit_readme(files_.back().second);
    }
    files_.emplace_back(place(kSchemaFile, is_project_),
                        config_schema(/*is_strict=*/false, registered_components()));
  }

  /// Writes them in the order of their names, and shows these.
  void write(const std::string& folder) {
    std::sort(files_.begin(), files_.end());
    for (auto& [file, content] : files_) {
      if (is_project_ && content.starts_with("code:")) {
        const size_t end = content.find('\n');  // the line `code: [...]`
        content.replace(0, end, fmt::format("code: [../build/lib{}.so]  # built by CMake", name_));
      }
      if (file.ends_with(".yaml")) {
        content = fmt::format("# yaml-language-server: $schema={}\n{}", kSchemaFile, content);
      }
      const std::string path = folder + "/" + file;
      make_folders(fs::path(path).parent_path().string());
      write_file_atomically(path, content);
      fmt::print("{}\n", path);
    }
  }

 private:
  void add(const fs::path& path, const std::string& target) {
    std::string content = read_file(path.string());
    if (source_ != nullptr && path.extension() == ".cpp") {
      content = fitted(std::move(content), source_->made);
    }
    const auto renamed = [&](std::string text) {
      return replaced(replaced(std::move(text), kClassName, class_name(name_)), kFileName, name_);
    };
    files_.emplace_back(renamed(target), renamed(std::move(content)));
    check_classes(files_.back().second, name_);
  }

  void add_project() {
    for (const auto& entry : fs::recursive_directory_iterator(templates_ / kProject)) {
      if (!entry.is_regular_file()) continue;
      add(entry.path(), entry.path().lexically_relative(templates_ / kProject).string());
    }
  }

  /// The README of a translated config that needs no code.
  void fit_readme(std::string& text) const {
    text.replace(
        0, text.find("```"),
        fmt::format("# {0}\n\n`{0}.yaml` is a translation of {1}'s {2}. Its head says what "
                    "became of the keys that changed.\n\n",
                    name_, source_->program, source_->files));
    text =
        replaced(std::move(text),
                 fmt::format("# compiles {}.cpp when it changed, then trains", name_), "# trains");
    if (!source_->made.trains) text = evaluating(text, name_);
  }

  const fs::path templates_ = build_settings().templates;
  std::string name_;
  bool is_project_;
  const Source* source_;
  std::vector<std::pair<std::string, std::string>> files_;  ///< Name in the folder, content.
};

/// The commands that come next, and where to read on.
void print_next(const std::string& folder, const std::string& name, bool is_project, bool trains) {
  // A relative path of the program would be wrong in the new folder.
  const bool is_path = program_name().find('/') != std::string::npos;
  const std::string program = shell_word(
      is_path ? fs::absolute(program_name()).lexically_normal().string() : program_name());
  if (is_project) {
    fmt::print(
        "\ncd {} && cmake -B build && cmake --build build   # README.md says which stepop it "
        "finds\n"
        "{} -n first -b configs/{}.yaml -t\n",
        shell_word(folder), program, name);
  } else {
    fmt::print("\ncd {}\n{} -n first -b {}.yaml{}\n", shell_word(folder), program, name,
               trains ? " -t" : "   # no step trains: this evaluates the weights of init_from");
  }
  const fs::path pages = fs::path(build_settings().templates).parent_path().lexically_normal();
  fmt::print("\nfirst hour: {}\nguide: {}\n", (pages / "FIRST_HOUR.md").string(),
             (pages / "README.md").string());
}

int new_command(const Arguments& arguments, const NewFlags& own) {
  const std::string folder = fs::path(arguments.operands[0]).lexically_normal().string();
  const std::string name = fs::path(folder).filename().string();
  const std::string kind = own.kind.value_or("classifier");
  check_name(name, own.project);
  check_template(kind);
  if (fs::exists(folder)) {
    throw UsageError(fmt::format("stepop new: {} is there already; nothing was changed", folder));
  }
  const std::optional<Source> source = read_source(own, name);
  NewFiles files(name, own.project, source ? &*source : nullptr);
  files.gather(kind);
  files.write(folder);
  if (source) {
    fmt::print("\nWhat became of {}, where it changed:\n", source->files);
    for (const auto& [key, what] : source->made.notes) fmt::print("  {}: {}\n", key, what);
  }
  print_next(folder, name, own.project, !source || source->made.trains);
  return 0;
}

STEPOP_REGISTER_COMMAND(
    new_command, NewFlags,
    {.name = "new",
     .group = CommandGroup::kBegin,
     .operands = "NAME [--template KIND] [--project] [--from-edflow FILE ... | --from-dlas FILE]",
     .fewest = 1,
     .most = 1,
     .about = "make a folder with a model, a dataset, an iterator and a config to start from",
     .takes = "",
     .example = "stepop new denoiser --template autoencoder"});

}  // namespace

}  // namespace stepop
