#include "runtime/tools/code/capture_check.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace capture_check_test {

/// What is found in a source, a line each, without the words that all messages share.
std::string found(const std::string& source) {
  std::string lines;
  for (std::string text : check_captures(source, "a.cpp")) {
    const std::string why =
        ": step_op has returned when it runs, and what it refers to is gone: capture by value, ";
    const size_t place = text.find(why);
    REQUIRE(place != std::string::npos);
    lines += text.replace(place, why.size(), " -> ") + "\n";
  }
  return lines;
}

/// The same for the body of a step_op.
std::string in_step_op(const std::string& body) {
  return found("StepOps step_op(const Batch& batch) override {" + body + "}");
}

TEST_CASE("an op that captures by reference is reported with its place and what to write") {
  const auto findings = check_captures(R"(#include <stepop/stepop.h>

StepOps Denoiser::step_op(const Batch& batch) {
  const auto loss = model_->forward(batch["image"]).mean();
  return {
      .train_op = [&] { update_.step(loss); },
      .log_op = [=, this] { return Logs{.scalars = {{"loss", loss}}}; },
  };
}
)",
                                       "denoiser.cpp");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0] ==
        "denoiser.cpp:6: train_op captures by reference ([&]): step_op has returned when it runs, "
        "and what it refers to is gone: capture by value, [=, this]");
}

TEST_CASE("ways to capture") {
  const auto captures = [](const std::string& list) {
    return in_step_op("return {.train_op = [" + list + "] {}};");
  };
  CHECK(captures("") == "");
  CHECK(captures("=") == "");
  CHECK(captures("=, this") == "");
  CHECK(captures("this, loss, *this") == "");
  CHECK(captures("x = &y, z = f(a & b, &c)") == "");
  CHECK(captures("...xs = std::move(xs)") == "");
  CHECK(captures("&") == "a.cpp:1: train_op captures by reference ([&]) -> [=, this]\n");
  CHECK(captures("&, this") ==
        "a.cpp:1: train_op captures by reference ([&, this]) -> [=, this]\n");
  CHECK(captures("&, n = f()") ==
        "a.cpp:1: train_op captures by reference ([&, n = f()]) -> [=, this, n = f()]\n");
  CHECK(captures("=, &loss") ==
        "a.cpp:1: train_op captures loss by reference ([=, &loss]) -> [=, this]\n");
  CHECK(captures("this, & loss , &image, n") ==
        "a.cpp:1: train_op captures loss, image by reference ([this, & loss , &image, n]) -> "
        "[this, loss, image, n]\n");
  CHECK(captures("&x = y") == "a.cpp:1: train_op captures x by reference ([&x = y]) -> [x = y]\n");
  CHECK(captures("&...xs") == "a.cpp:1: train_op captures xs by reference ([&...xs]) -> [...xs]\n");
}

TEST_CASE("ways to write the lambda") {
  for (const char* rest : {"{}", "() {}", "() mutable {}", "() -> Logs {}", "() noexcept(true) {}",
                           "() -> std::map<int, int> { return {}; }", "<class T>(T x) {}",
                           "[[nodiscard]] () {}", "(int x = f(1)) mutable -> at::Tensor& {}"}) {
    CAPTURE(rest);
    CHECK(in_step_op("return {.log_op = [&] " + std::string(rest) + "};") ==
          "a.cpp:1: log_op captures by reference ([&]) -> [=, this]\n");
  }
}

TEST_CASE("ways to become an op") {
  for (const char* body :
       {"return {.train_op = [&] {}};", "return {.train_op{[&] {}}};",
        "return {.train_op = ([&] {})};", "return StepOps{.log_op = [=] {}, .train_op = [&] {}};",
        "ops.train_op = [&] {};", "ops->train_op = [&] {}; return *ops;",
        "return {.train_op = TrainOp([&] {})};", "return {.train_op = stepop::TrainOp{[&] {}}};",
        "return {[&] {}};", "return StepOps{[&] {}, {}};", "StepOps ops{[&] {}};",
        "StepOps ops = {[&] {}};", "return {.train_op = std::function<void()>([&] {})};",
        "auto train = [&] {}; return {.train_op = train};",
        "auto train{[&] {}}; if (x) { y(); } return {.train_op = std::move(train)};",
        "const std::function<void()> train([&] {}); return {.train_op = train, .log_op = log};",
        "TrainOp train = [&] {}; use(train);", "const TrainOp train([&] {});",
        "if (x) { StepOps ops; ops.train_op = [&] {}; return ops; }"}) {
    CAPTURE(body);
    CHECK(in_step_op(body) == "a.cpp:1: train_op captures by reference ([&]) -> [=, this]\n");
  }
  CHECK(found("LogOp Denoiser::samples(int n) const { return [n] {}; }") == "");
}

TEST_CASE("ops of other names") {
  for (const char* body :
       {R"(return {.log_ops = {{"sample_op", [&] {}}}};)",
        R"(return {.log_ops = {{"a", [=] {}}, {"sample_op", [&] {}}}};)",
        R"(return {.log_ops{{"sample_op", [&] {}}}};)",
        R"(ops.log_ops = OrderedMap<LogOp>{{"sample_op", [&] {}}};)",
        R"(ops.log_ops.set("sample_op", [&] {});)", R"(ops.log_ops["sample_op"] = [&] {};)",
        R"(more = {{"sample_op", [&] {}}};)", R"(more = {{"sample_op", other}};
                              auto log = [&] {}; more = {{"sample_op", log}};)",
        "ops.sample_op = [&] {};"}) {
    CAPTURE(body);
    const std::string text = in_step_op(body);
    CHECK(text.substr(text.find(' ') + 1) ==
          "sample_op captures by reference ([&]) -> [=, this]\n");
  }
  CHECK(in_step_op(R"(return {.train_ops = {{"train_op/generator", [&] {}},
                                            {"train_op/discriminator", [&, x] {}}}};)") ==
        "a.cpp:1: train_op/generator captures by reference ([&]) -> [=, this]\n"
        "a.cpp:2: train_op/discriminator captures by reference ([&, x]) -> [=, this]\n");
  CHECK(in_step_op("ops.log_ops[name] = [&] {};") ==
        "a.cpp:1: log_ops captures by reference ([&]) -> [=, this]\n");
}

TEST_CASE("a variable that becomes two ops is reported once") {
  CHECK(in_step_op(R"(
    const auto log = [&] { return Logs(); };
    return {.log_op = log, .log_ops = {{"sample_op", log}}};)") ==
        "a.cpp:2: log_op captures by reference ([&]) -> [=, this]\n");
}

TEST_CASE("lambdas that are no ops capture as they like") {
  for (const char* body :
       {"std::sort(a.begin(), a.end(), [&](int x, int y) { return k[x] < k[y]; }); return {};",
        "return {.train_op = [=, this] { std::for_each(a.begin(), a.end(), [&](auto& x) { s += x; "
        "}); }};",
        "return {.log_op = [=] { const auto f = [&] { return loss; }; return Logs{{{\"x\", f()}}}; "
        "}};",
        "const auto loss_of = [&](auto x) { return x; }; return {.train_op = [=] { loss_of(1); }};",
        "return {.train_op = [&] { return [=] {}; }()};",
        "return {.train_op = make([&] { return 1; })};",
        "return {.train_op = ops[i], .log_op = ops[&x - y]};",
        "if (ops.train_op == x) { f([&] {}); }", "{ auto log = [&] {}; } return {.log_op = log};",
        "run(\"train_op\", [&] {});", "LogOp log = make_log(batch, [&] {});",
        "auto& [a, b] = pair;"}) {
    CAPTURE(body);
    CHECK(in_step_op(body) == "");
  }
  CHECK(found("void f() { auto log = [&] {}; log(); } "
              "StepOps step_op(const Batch&) { return {.log_op = log}; }") == "");
  CHECK(found("auto f() { return {[&] {}}; }") == "");
}

TEST_CASE("comments, texts and preprocessor lines are not code") {
  CHECK(found("// .train_op = [&] {}\n") == "");
  CHECK(found("// more \\\n .train_op = [&] {}\n") == "");
  CHECK(found("/* .train_op = [&] {} \n */") == "");
  CHECK(found("auto s = \".train_op = [&] {} \\\" .log_op = [&] {}\";") == "");
  CHECK(found("auto s = R\"(\" .train_op = [&] {})\";") == "");
  CHECK(found("auto s = u8R\"x(\n)\" .train_op = [&] {})x\";") == "");
  CHECK(found("#define OP .train_op = [&] \\\n {}\n  # if x.train_op = [&] {}\n") == "");
  // They end where a compiler says.
  CHECK(found("auto c = '\"'; auto n = 1'000'000; auto e = '\\''; x.train_op = [&] {};") != "");
  CHECK(found("auto s = \"//\"; /* \" */ x.train_op = [&] {};") ==
        "a.cpp:1: train_op captures by reference ([&]) -> [=, this]\n");
  CHECK(found("#define X 1\n\nauto s = R\"(\n\n)\"; // \n x.train_op =\n\n   [&] {};") ==
        "a.cpp:8: train_op captures by reference ([&]) -> [=, this]\n");
}

TEST_CASE("source that ends anywhere is no trouble") {
  const std::string source = R"x(/* c */ StepOps step_op(const Batch& batch) override {
    const auto log = [&]() -> std::vector<int> { return R"(x)"; };
    ops.log_ops["a_op"] = [=, &x = y[1]] { f('a', 1.e+5); };
    return {.train_op = x ? TrainOp([&] {}) : TrainOp(), .log_ops = {{"b_op", log}}}; })x";
  for (size_t size = 0; size <= source.size(); ++size) {
    check_captures(source.substr(0, size), "a.cpp");
    check_captures(source.substr(size), "a.cpp");
  }
  CHECK(check_captures(source, "a.cpp").size() == 3);
}

TEST_CASE("brackets and branches without end are no trouble") {
  for (const char* text : {"(", "{", "[", "x ? ", "x ? y : ", "move(", "TrainOp{", "{\"a_op\", "}) {
    CAPTURE(text);
    std::string source = ".train_op = ";
    for (int i = 0; i < 5000; ++i) source += text;
    CHECK(check_captures(source, "a.cpp").empty());
  }
}

TEST_CASE("the iterators and tests of this tree have no such op") {
  int count = 0;
  for (const char* folder : {"iterators", "tests/runtime/train/loop", "tests/cli"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::string(STEPOP_SOURCE_DIR "/") + folder)) {
      if (entry.path().extension() != ".cpp") continue;
      ++count;
      CAPTURE(entry.path().string());
      CHECK(check_captures(read_bytes(entry.path().string()), "a.cpp").empty());
    }
  }
  CHECK(count > 10);
}

}  // namespace capture_check_test
}  // namespace stepop
