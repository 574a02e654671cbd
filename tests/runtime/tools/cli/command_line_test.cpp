#include "runtime/tools/cli/command_line.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "runtime/core/config/resolve.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/cli/help.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace command_line_test {

using Words = std::vector<std::string>;

Arguments parse_arguments(const Words& words) { return parse_command_line(words).arguments; }

/// The overrides as `path=value` in flow YAML.
Words overrides(const Words& words) {
  Words texts;
  for (const auto& override : parse_arguments(words).overrides) {
    texts.push_back(override.path + "=" + flow_yaml(override.value));
  }
  return texts;
}

TEST_CASE("any number of base files follows one flag, or several") {
  const Words files = {"a.yaml", "b.yaml", "c.yaml"};
  CHECK(parse_arguments({"-b", "a.yaml", "b.yaml", "c.yaml", "-t"}).base == files);
  CHECK(parse_arguments({"-b", "a.yaml", "-t", "-b", "b.yaml", "c.yaml"}).base == files);
  CHECK(parse_arguments({"--base=a.yaml", "--base", "b.yaml", "c.yaml"}).base == files);
}

TEST_CASE("model=mlp is the config model/mlp.yaml beside the base") {
  const ScratchFolder folder;
  const std::string base = folder.write("base.yaml", "model: LeNet");
  std::filesystem::create_directories(folder.path("model"));
  std::filesystem::create_directories(folder.path("optimizer/lr"));
  folder.write("model/mlp.yaml", "{class: MLP, hidden: [8]}");
  folder.write("model/mlp_large.yaml", "include: [mlp.yaml]\nhidden: [64]");
  folder.write("optimizer/lr/falling.yaml", "{class: linear, from: 1, to: 0, steps: end}");
  CHECK(overrides({"-b", base, "model=mlp", "-t"}) == Words{"model={class: MLP, hidden: [8]}"});
  CHECK(overrides({"-b", base, "-t", "model=mlp_large", "optimizer/lr=falling"}) ==
        Words{"model={class: MLP, hidden: [64]}",
              "optimizer/lr={class: linear, from: 1, to: 0, steps: end}"});
  CHECK(parse_arguments({"-b", base, "model=mlp", "-t"}).base == Words{base});
  CHECK(resolve_config(
            {base}, parse_arguments({"-b", base, "model=mlp", "--model/hidden", "[3]"}).overrides)
            .find("model")
            ->find("hidden")
            ->as_list()
            .size() == 1);

  const auto refused = [&](const Words& words) {
    std::string text = message_of([&] { parse_command_line(words); });
    for (size_t at = 0; (at = text.find(folder.path())) != std::string::npos;) {
      text.replace(at, folder.path().size(), "FOLDER");
    }
    return text;
  };
  CHECK(refused({"-b", base, "model=mpl"}) ==
        "model=mpl: no mpl.yaml in FOLDER/model; there are: mlp, mlp_large; did you mean mlp?");
  CHECK(refused({"-b", base, "seed=3"}) ==
        "seed=3: no config lies in FOLDER/seed; did you mean --seed 3?");
  CHECK(refused({"-t", "model=mlp"}) ==
        "model=mlp: expected -b, as model=mlp names a file model/mlp.yaml beside its config; a key "
        "of the config is set by --model mlp");
}

TEST_CASE("a name with commas stays one name") {
  CHECK(parse_arguments({"-b", "a,b.yaml"}).base == Words{"a,b.yaml"});
  CHECK(parse_arguments({"-n", "a,b"}).name == "a,b");
}

TEST_CASE("a name with a line break stays one name, whatever it begins with") {
  const Arguments arguments = parse_arguments({"-b", "/a\nb.yaml", "c=d\n.yaml", "-p", "/x\ny"});
  CHECK(arguments.base == std::vector<std::string>{"/a\nb.yaml", "c=d\n.yaml"});
  CHECK(arguments.project == "/x\ny");
}

TEST_CASE("switches take an optional bool") {
  CHECK(parse_arguments({"-t"}).train);
  CHECK(parse_arguments({"-t", "true"}).train);
  CHECK_FALSE(parse_arguments({"-t", "false"}).train);
  CHECK(parse_arguments({"-r", "-d"}).retrain);
  CHECK(parse_arguments({"-r", "-d"}).debug);
  CHECK(parse_arguments({"--allow-unknown"}).allow_unknown);
  CHECK(parse_arguments({"--check"}).check);
  CHECK(parse_arguments({"--profile", "true"}).profile);
  CHECK_FALSE(parse_arguments({"--check", "false", "--profile=false"}).profile);
}

TEST_CASE("the other flags take a value") {
  const Arguments arguments =
      parse_arguments({"-n", "x", "-p", "logs/a", "-c", "230", "-l", "debug", "--lr", "1"});
  CHECK(arguments.name == "x");
  CHECK(arguments.project == "logs/a");
  CHECK(arguments.checkpoint == "230");
  CHECK(arguments.log_level == LogLevel::kDebug);
  CHECK(arguments.command_line == "stepop -n x -p logs/a -c 230 -l debug --lr 1");
}

TEST_CASE("-c of `stepop eval` names a callback, as often as it is given") {
  const Arguments arguments = parse_arguments(
      {"eval", "-c", "a", "-c", "b:c", "logs/x", "--callback=./d.py", "--a/normalize", "true"});
  CHECK(arguments.operands == Words{"logs/x"});
  CHECK_FALSE(arguments.checkpoint);
  CHECK(arguments.overrides.size() == 1);
  CHECK(parse_arguments({"-p", "logs/x", "-c", "best"}).checkpoint == "best");
}

TEST_CASE("an override is a path and a YAML value") {
  CHECK(overrides({"--optimizer/lr", "1e-3"}) == Words{"optimizer/lr=0.001"});
  CHECK(overrides({"--lr", "-1e-3", "--n", "-3"}) == Words{"lr=-0.001", "n=-3"});
  CHECK(overrides({"--lr=3", "--x", "4"}) == Words{"lr=3", "x=4"});
  CHECK(overrides({"--model/hidden", "[64, 32]"}) == Words{"model/hidden=[64, 32]"});
  CHECK(overrides({"--m", "{class: MLP, a: true}"}) == Words{"m={class: MLP, a: true}"});
  CHECK(overrides({"--a", "true", "--b", "null", "--c", "text", "--d", "'1'"}) ==
        Words{"a=true", "b=null", "c=text", "d=\"1\""});
  CHECK(overrides({"--a=b=c", "--b=", "--c=a: b"}) == Words{"a=\"b=c\"", "b=\"\"", "c=\"a: b\""});
}

TEST_CASE("with -w the dots of keys are slashes, as an agent of Weights & Biases writes them") {
  const Words slashes = {"optimizer/lr=0.5", "data/file=a.b"};
  CHECK(overrides({"-w", "--optimizer.lr=0.5", "--data.file=a.b"}) == slashes);
  CHECK(overrides({"--optimizer.lr=0.5", "--data.file", "a.b", "--wandb_sweep"}) == slashes);
  CHECK(overrides({"--a.b=3"}) == Words{"a.b=3"});
}

TEST_CASE("commands come first") {
  const auto command = [](const Words& words) { return parse_arguments(words).command; };
  REQUIRE(commands().size() > 15);
  for (const CommandInfo* known : commands()) CHECK(find_command(known->name) == known);
  CHECK(command({"config", "-b", "a.yaml"}) == find_command("config"));
  CHECK(command({"list"}) == find_command("list"));
  CHECK(command({"checkpoints", "logs/a"}) == find_command("checkpoints"));
  CHECK(command({"-n", "list"}) == nullptr);
  CHECK((parse_arguments({"checkpoints", "logs/a"}).operands == Words{"logs/a"}));
  CHECK((parse_arguments({"checkpoints", "-p", "logs/a"}).operands == Words{"logs/a"}));
  CHECK(parse_arguments({"-h"}).help);
  CHECK(parse_arguments({"checkpoints", "-h"}).help);
  CHECK(parse_arguments({}).help);
  CHECK(parse_arguments({"--version"}).version);
}

struct EchoFlags {
  bool loud = false;
  std::optional<std::string> output;
  std::vector<std::string> each;
  std::vector<std::string> many;
  bool lr = false;

  void add_to(Flags& flags) {
    flags.add("loud", loud, "with a shout");
    flags.add({'o', "output"}, output, "a file");
    flags.add({'c', "each"}, each, "one by one");
    flags.add("many", many, "several", Flag::Takes::kValues);
    flags.add("lr", lr, "without a value", Flag::Takes::kUnlessValue);
  }
};

EchoFlags echoed;

int echo_command(const Arguments& arguments, const EchoFlags& own) {
  echoed = own;
  return static_cast<int>(arguments.operands.size());
}

STEPOP_REGISTER_COMMAND(echo_command, EchoFlags,
                        {.name = "echo-test",
                         .group = CommandGroup::kShell,
                         .operands = "WORD [WORD]",
                         .fewest = 1,
                         .most = 2,
                         .about = "repeat",
                         .takes = "base log_level",
                         .example = "stepop echo-test a"});

TEST_CASE("a command has flags of its own, and takes some of a start's") {
  const auto run = [](Words words) {
    words.insert(words.begin(), "echo-test");
    const CommandLine line = parse_command_line(words);
    return line.command->run(line.arguments);
  };
  CHECK(run({"a"}) == 1);
  CHECK_FALSE(echoed.loud);
  CHECK_FALSE(echoed.output);
  CHECK(run({"a", "b", "--loud", "-o", "x,y", "-c", "1", "--many", "2", "3", "-c", "4", "--lr"}) ==
        2);
  CHECK(echoed.loud);
  CHECK(echoed.output == "x,y");
  CHECK(echoed.each == Words{"1", "4"});
  CHECK(echoed.many == Words{"2", "3"});
  CHECK(echoed.lr);
  run({"a", "--lr", "0.1"});  // a key of the config
  CHECK_FALSE(echoed.lr);

  const auto refusal = [&](const Words& words) { return message_of([&] { run(words); }); };
  CHECK(refusal({"a", "-t"}) == "stepop echo-test does not take -t");
  CHECK(refusal({"a", "--checkpoint", "best"}) == "stepop echo-test does not take --checkpoint");
  CHECK(refusal({"a", "-o"}) == "-o: no value given: a file");
  CHECK(refusal({"a", "-b", "x.yaml", "-l", "debug"}) == "no error");
  const auto said = [](const Words& words) {
    return message_of([&] { parse_command_line(words); });
  };
  CHECK(said({"checkpoints", "a", "--lr", "3"}) == "stepop checkpoints does not take --lr");
  CHECK(said({"runs", "--jsom", "3"}) == "stepop runs does not take --jsom; did you mean --json?");
}

TEST_CASE("what cannot be understood is refused with what would help") {
  const auto refusal = [](const Words& words) {
    return message_of([&] { parse_arguments(words); });
  };
  CHECK(
      refusal({"-t", "digits"}) ==
      "stray word \"digits\"; a key of the config is set by --path/key VALUE, a list of values by "
      "--path/key '[1, 2]'");
  CHECK(refusal({"--lr", "1", "2"}).starts_with("stray word \"2\""));
  CHECK(refusal({"checkpoint", "logs/a"}) ==
        "no command \"checkpoint\"; did you mean checkpoints? `stepop --help` lists the commands");
  CHECK(refusal({"checkpoints", "a", "b"}) == "stepop checkpoints: stray word \"b\"");
  CHECK(refusal({"checkpoints"}) == "stepop checkpoints: nothing given");
  CHECK(refusal({"--lr"}) == "--lr: no value given; write --lr VALUE, for a switch --lr true");
  CHECK(refusal({"--lr", "--x", "1"}).starts_with("--lr: no value given"));
  CHECK(refusal({"-n"}) ==
        "-n: no value given: name of a new run: the end of its folder's name; with -p and without "
        "-t, "
        "of an evaluation");
  CHECK(refusal({"-x"}) ==
        "unknown flag \"-x\"; there are -n, -b, -t, -p, -c, -r, -l, -d, -w, -h; `stepop --help` "
        "explains them");
  CHECK(refusal({"-n", "a", "-n", "b"}) == "--name is given twice");
  CHECK(refusal({"--extra/a", "{extra/root}/train"}) ==
        "--extra/a: a text that begins with a reference has quotes inside the quotes: --extra/a "
        "'\"{extra/root}/train\"'");
  CHECK(refusal({"--extra/a", "{a: 1"}).find("inside the quotes") == std::string::npos);
  CHECK(refusal({"--", "a"}) == "\"--\" is followed by no key: --path/key VALUE");
}

TEST_CASE("what other programs take is answered with what does it here") {
  const auto refusal = [](const Words& words) {
    return message_of([&] { parse_arguments(words); });
  };
  const std::string end = " `stepop --help` lists the commands";
  CHECK(refusal({"optimizer.lr=3"}) ==
        "no command \"optimizer.lr=3\"; did you mean --optimizer/lr 3?" + end);
  CHECK(refusal({"+model.hidden=[1, 2]", "-t"}) ==
        "no command \"+model.hidden=[1, 2]\"; did you mean --model/hidden '[1, 2]'?" + end);
  CHECK(refusal({"train", "-b", "x.yaml"}) ==
        "no command \"train\"; -t trains: stepop -b x.yaml -t;" + end);
  CHECK(refusal({"train", "configs/digits.yaml"}) ==
        "no command \"train\"; -t trains: stepop -n digits -b configs/digits.yaml -t;" + end);
  CHECK(refusal({"train", "--n-b", "3", "my-base.yaml"}) ==
        "no command \"train\"; -t trains: stepop --n-b 3 -n my-base -b my-base.yaml -t;" + end);
  CHECK(refusal({"trian", "a.yaml", "b.yaml"}) ==
        "no command \"trian\"; -t trains: stepop -n a -b a.yaml b.yaml -t;" + end);
  CHECK(refusal({"-b", "x.yaml", "-t", "--resume", "logs/x"}) ==
        "stray word \"logs/x\"; --resume takes none and resumes the newest run of a name; this one "
        "is resumed by: stepop -p logs/x -t");
  CHECK(refusal({"fit"}) == "no command \"fit\"; -t trains: stepop -b base.yaml -t;" + end);
  CHECK(
      refusal({"resume", "logs/a"}) ==
      "no command \"resume\"; stepop -p logs/RUN -t resumes a run, --resume the newest of a name;" +
          end);
  CHECK(refusal({"test", "logs/a"}) ==
        "no command \"test\"; stepop -p logs/RUN evaluates a run;" + end);
  CHECK(refusal({"init", "x"}) == "no command \"init\"; did you mean new?" + end);
  CHECK(refusal({"-train"}) == "unknown flag \"-train\"; did you mean --train?");
  CHECK(refusal({"-o", "x"}) ==
        "-o: a flag of stepop data, stepop tune, stepop export, stepop echo-test alone");
  CHECK(refusal({"-lr", "3"}) == "unknown flag \"-lr\"; did you mean --lr?");
  CHECK(refusal({"-epochs", "3"})
            .ends_with(", and --epochs VALUE sets a key of the config; "
                       "`stepop --help` explains them"));
}

TEST_CASE("the help names every flag and shows examples") {
  const std::string help = help_text();
  for (const char* word :
       {"-n, --name", "-b, --base", "-t, --train", "-p, --project", "-c, --checkpoint",
        "-r, --retrain", "-l, --log_level", "-d, --debug", "--path/key", "Examples"}) {
    CHECK(help.find(word) != std::string::npos);
  }
  const std::string one = help_text(*find_command("new"));
  CHECK(
      one.starts_with("stepop new NAME [--template KIND] [--project] [--from-edflow FILE ... | "
                      "--from-dlas FILE]\n"));
  CHECK(one.find("\n      --project ") != std::string::npos);
  CHECK(one.find("--base") == std::string::npos);
  for (const CommandInfo* command : commands()) {
    CAPTURE(command->name);
    const std::string text = help_text(*command);
    CHECK(text.rfind(fmt::format("stepop {}", command->name)) > 0);  // the example
    CHECK(help.find(fmt::format("\n  {} ", command->name)) != std::string::npos);
    for (const auto& flag : own_flags(*command)) {
      CHECK(text.find("--" + flag.name) != std::string::npos);
    }
  }
  CHECK(version_text().find("\nLibTorch 2.") != std::string::npos);
  CHECK(version_text().find("\nHDF5 1.") != std::string::npos);
}

}  // namespace command_line_test
}  // namespace stepop
