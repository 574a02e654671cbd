// `stepop report RUN ...`. What a browser shows is checked where one is installed.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/tools/report/report.h"
#include "tests/cli/browser.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"
#include "tests/python.h"

namespace stepop {
namespace report_test {

namespace fs = std::filesystem;
using nlohmann::json;

/// The data in a page; checks that the page is whole and needs nothing else.
json data_of(const std::string& page) {
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.ends_with("</html>\n"));
  for (const char* outside : {"http:", "https:", "src=\"", "<link", "@import", "url(/", "{{"}) {
    CAPTURE(outside);
    const size_t at = page.find(outside);
    // The name of SVG's elements is no address that anything is loaded from.
    const bool is_name =
        at != std::string::npos && page.substr(at).starts_with("http://www.w3.org/2000/svg");
    CHECK((at == std::string::npos || is_name));
  }
  CHECK(page.find("default-src 'none'; img-src data:;") != std::string::npos);
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t at = page.find(begin) + begin.size();
  const std::string text = page.substr(at, page.find("</script>", at) - at);
  CHECK(text.find('<') == std::string::npos);
  return json::parse(text);
}

json report_of(const ScratchFolder& folder, const std::string& run) {
  const CommandResult result = run_in(folder, "stepop report " + run);
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  CHECK(result.out.starts_with(run + "/report.html ("));
  return data_of(read_bytes(folder / (run + "/report.html")));
}

/// Opens a page where there is a browser; no check may fail. Returns what the checks said.
std::string check_in_browser(const std::string& path, int width = 1200) {
  static const std::string browser = find_browser();
  if (browser.empty()) {
    MESSAGE("not opened in a browser: there is none; `apt-get install chromium` brings one");
    return "";
  }
  const OpenedPage page =
      open_page(browser, path, read_bytes(STEPOP_SOURCE_DIR "/tests/cli/report_checks.js"), width);
  CHECK(page.console == "");
  const size_t begin = page.document.find("<pre id=\"checks\">");
  REQUIRE(begin != std::string::npos);
  std::string checks = page.document.substr(begin);
  CAPTURE(checks);
  CHECK(checks.find("FAILED") == std::string::npos);
  CHECK(checks.find("ok: the page came to its end") != std::string::npos);
  return checks;
}

/// A run with everything that can go wrong on a page.
void make_hard_run(const ScratchFolder& folder, const std::string& name) {
  folder.write(name + "/configs/train_2026-11-21T10-00-00.yaml",
               "note: \"</script><b>bold</b>\"\nlr: 0.1\n# <img src=x onerror=alert(1)>\n");
  folder.write(name + "/configs/train_2026-11-21T11-00-00.yaml",
               "note: \"</script><b>bold</b>\"\nlr: 0.05\nmore: {x: 1}\n");
  folder.write(name + "/configs/train_2026-11-21T12-00-00.yaml", "broken: [\n");
  std::string metrics;
  for (int i = 1; i <= 3000; ++i) {
    const std::string loss = i > 1000 && i < 1500 ? "\"NaN\"" : i == 2000 ? "1e300" : "0.5";
    metrics += fmt::format(
        "{{\"step\":{},\"epoch\":{},\"samples\":{},\"time\":{},\"train/log_op/loss\":{},"
        "\"train/log_op/loss/gan\":{},\"train/train_op/<img src=x onerror=alert(1)>\":-1}}\n",
        i, i * 0.01, i * 64, i * 0.1, loss, std::sin(i));
  }
  metrics += "{\"step\":3000,\"validation/eval_op/loss\":\"Infinity\"}\nbroken\n{\"half";
  folder.write(name + "/train/metrics.jsonl", metrics);
  folder.write(name + "/train/log.txt", "\xff\xfe a line </script>\nlast\n");
  folder.write(name + "/train/superseded/2026-11-21T11-00-00/metrics.jsonl",
               "{\"step\":4000,\"train/log_op/superseded\":1}\n");
  folder.write(name + "/eval/2026-11-21T10-00-00_a/3000/report.txt", "<b>text</b>");
  folder.write(name + "/eval/2026-11-21T10-00-00_a/3000/scalars.json",
               "{\"validation/eval_op/loss\": \"Infinity\"}");
  folder.write(name + "/eval/2026-11-21T10-00-00_a/3000/outputs.h5", "no HDF5");
}

TEST_CASE("a report of the digits has curves, pictures, evaluations, config and worst examples") {
  const WholeRun& run = whole_run();
  const std::string name = only_run(run.folder);
  const json data = report_of(run.folder, name);
  CHECK(data["run"]["state"] == "ended");
  CHECK(data["run"]["step"] == 460);
  CHECK(data["notes"].empty());
  // Every number of the metrics is in the curves, to six digits.
  size_t points = 0;
  for (const auto& curve : data["curves"]) {
    CHECK(!curve["thinned"].get<bool>());
    size_t at = 0;
    for (const auto& line : run.metrics) {
      if (!line.contains(curve["name"])) continue;
      REQUIRE(at < curve["steps"].size());
      CHECK(curve["steps"][at] == line["step"]);
      CHECK(curve["values"][at].get<double>() ==
            doctest::Approx(line[curve["name"].get<std::string>()].get<double>()).epsilon(1e-5));
      ++at;
    }
    CHECK(at == curve["steps"].size());
    points += at;
  }
  size_t numbers = 0;
  for (const auto& line : run.metrics) numbers += line.size() - 4;  // step, epoch, samples, time
  CHECK(points == numbers);

  CHECK(data["pictures"].size() == 2);
  CHECK(data["pictures"][0]["title"] == "train/log_op/input");
  CHECK(data["pictures"][0]["frames"].size() > 3);
  CHECK(data["evaluations"]["rows"].size() == 20);
  CHECK(data["evaluations"]["rows"][19]["step"] == 460);
  CHECK(data["config"]["yaml"].get<std::string>().find("iterator: Classifier") !=
        std::string::npos);
  // The worst example is the one that h5py finds.
  const std::string worst = run_python(
      "import sys, h5py, numpy as np\n"
      "f = h5py.File(sys.argv[1]); i = f['labels/loss'][()].argmax()\n"
      "print(f['index'][i], f['outputs/class'][i], f['outputs/logits'][i].argmax())",
      {run.outputs});
  const json& first = data["worst"]["examples"][0];
  CHECK(fmt::format("{} {} {}\n", first["index"].get<int>(), first["values"][0].get<std::string>(),
                    first["values"][1].get<std::string>()) == worst);
  // What was embedded is the file itself.
  const std::string picture = run_python(
      "import base64, sys; print(base64.b64encode(open(sys.argv[1], 'rb').read()).decode(), "
      "end='')",
      {run.root + "/train/train/log_op/input_0000460.png"});
  CHECK(data["pictures"][0]["frames"].back()["data"] == picture);

  const std::string checks = check_in_browser(run.root + "/report.html");
  if (!checks.empty()) {
    CHECK(checks.find("charts: loss, accuracy, lr, grad_norm, examples_per_second, "
                      "data_wait, share of the time, process_mb\n") != std::string::npos);
    CHECK(checks.find("labels: training batches, validation batches, evaluation (validation); ") !=
          std::string::npos);
    CHECK(checks.find("sections: Curves, Pictures, Evaluations, Worst examples, Config, Log") !=
          std::string::npos);
    CHECK(checks.find("second place: step 3 · epoch 0.1304 · ") != std::string::npos);
    check_in_browser(run.root + "/report.html", /*width=*/500);
  }
}

TEST_CASE("NaN, damage and markup in names are shown as what they are") {
  const ScratchFolder folder;
  make_hard_run(folder, "run");
  const json data = report_of(folder, "run");
  CHECK(data["run"]["state"] == "unknown");
  REQUIRE(data["notes"].size() == 3);
  CHECK(data["notes"][0].get<std::string>().starts_with(
      "train_2026-11-21T12-00-00 could not be read: "));
  CHECK(data["notes"][1] == "lines of train/metrics.jsonl that are not metrics, left out: 1");
  CHECK(data["notes"][2].get<std::string>().starts_with(
      "the worst examples could not be read: cannot read "));
  CHECK(data["config"]["starts"][1]["changes"].size() == 2);
  CHECK(data["evaluations"]["rows"][0]["values"]["validation/eval_op/loss"] == "inf");
  for (const auto& curve : data["curves"]) {
    CHECK(curve["name"] != "train/log_op/superseded");
    if (curve["name"] != "train/log_op/loss") continue;
    bool has_gap = false;
    bool has_spike = false;
    for (size_t i = 0; i < curve["steps"].size(); ++i) {
      if (curve["values"][i].is_null()) has_gap = true;
      if (curve["values"][i] == 1e300) has_spike = curve["steps"][i] == 2000;
    }
    CHECK(has_gap);
    CHECK(has_spike);
  }
  const std::string checks = check_in_browser(folder / "run/report.html");
  if (!checks.empty()) {
    CHECK(checks.find("charts: loss, &lt;img src=x onerror=alert(1)&gt;, gan\n") !=
          std::string::npos);
  }
}

TEST_CASE("a part that is missing takes no other with it") {
  const ScratchFolder folder;
  const auto checks_of = [&](const std::string& data) {
    const std::string path = folder.write("page.html", report_page(data, "title"));
    return check_in_browser(path);
  };
  for (const char* data :
       {R"({})", R"({"run": {"name": "a", "state": "ended"}})",
        R"({"curves": [{"name": "train/log_op/x", "steps": [1, 2], "values": [3, 4]}]})",
        R"({"evaluations": {}, "config": {}, "worst": {}, "pictures": [{"title": "a/b/c"}]})",
        R"({"evaluations": {"rows": [{"step": 3}], "columns": [{"name": "a/b/c"}]},
            "config": {"yaml": "a: 1", "file": "a.yaml"},
            "worst": {"examples": [{"index": 3, "pictures": [null]}], "picture_keys": ["p"]}})"}) {
    CAPTURE(data);
    checks_of(data);
  }
  const std::string checks =
      checks_of(R"({"run": {"name": "a", "state": "ended", "seconds": 119.7}})");
  if (!checks.empty()) CHECK(checks.find("facts: training time 2 min 0 s\n") != std::string::npos);
}

TEST_CASE("a run that has done nothing yet has a report that says so") {
  const ScratchFolder folder;
  folder.write("run/configs/train_2026-11-21T10-00-00.yaml", "a: 1\n");
  const json data = report_of(folder, "run");
  CHECK(data["curves"].empty());
  CHECK(data["evaluations"]["rows"].empty());
  CHECK(!data.contains("worst"));
  const std::string checks = check_in_browser(folder / "run/report.html");
  if (!checks.empty()) {
    CHECK(checks.find("sections: Curves, Evaluations, Config\n") != std::string::npos);
  }
}

TEST_CASE("a long run and many pictures make a page of bounded size, which says what it left out") {
  const ScratchFolder folder;
  folder.write("run/configs/train_2026-11-21T10-00-00.yaml", "a: 1\n");
  std::string metrics;
  for (int i = 1; i <= 60'000; ++i) {
    metrics += fmt::format("{{\"step\":{},\"a/log_op/x\":{},\"a/log_op/y\":{}}}\n", i, std::sin(i),
                           i % 977);
  }
  folder.write("run/train/metrics.jsonl", metrics);
  for (int step = 1; step <= 100; ++step) {
    folder.write(fmt::format("run/train/train/log_op/a_{:07}.png", step),
                 std::string(1'000'000, 'x'));
  }
  const json data = report_of(folder, "run");
  CHECK(fs::file_size(folder / "run/report.html") < 9'000'000);
  CHECK(data["curves"][0]["thinned"] == true);
  CHECK(data["curves"][0]["count"] == 60'000);
  CHECK(data["curves"][0]["steps"].size() <= 2'000);
  CHECK(data["curves"][0]["means"]["values"].size() <= 1'000);
  CHECK(data["pictures"][0]["frames"].size() == 6);
  CHECK(data["pictures"][0]["left_out"] == 94);
  CHECK(data["pictures"][0]["frames"][0]["step"] == 1);
  CHECK(data["pictures"][0]["frames"][5]["step"] == 100);
}

TEST_CASE("a report about several runs draws their curves together and tells how they differ") {
  const ScratchFolder folder;
  const auto make = [&](const std::string& name, const std::string& lr, double loss) {
    folder.write("logs/" + name + "/configs/train_2026-11-21T10-00-00.yaml",
                 "lr: " + lr + "\nnote: \"<b>\"\n");
    std::string metrics;
    for (int i = 1; i <= 3000; ++i) {
      metrics += fmt::format(
          "{{\"step\":{},\"epoch\":{},\"samples\":{},\"time\":{},\"train/log_op/loss\":{}}}\n", i,
          i * 0.01, i * 64, i * loss, loss / i);
    }
    folder.write("logs/" + name + "/train/metrics.jsonl", metrics + "broken\n");
  };
  make("2026-11-21T10-00-00_a", "0.1", 1);
  make("2026-11-21T11-00-00_b", "0.2", 3);
  folder.write("logs/2026-11-21T12-00-00_c/configs/train_2026-11-21T12-00-00.yaml", "broken: [\n");
  folder.write("logs/debug_runs/here", "");
  const CommandResult result = run_in(folder, "stepop report logs/*");
  CHECK(result.err == "stepop: logs/debug_runs: not the folder of a run: left out\n");
  CHECK(result.out.starts_with("logs/report.html ("));
  // The page that is there now is among logs/*, and is written again.
  CHECK(run_in(folder, "stepop report logs/*").out == result.out);
  const json data = data_of(read_bytes(folder / "logs/report.html"));
  REQUIRE(data["runs"].size() == 3);
  CHECK(data["runs"][0]["label"] == "a");
  CHECK(data["runs"][1]["run"]["step"] == 3000);
  CHECK(data["runs"][1]["curves"][0]["name"] == "train/log_op/loss");
  CHECK(data["runs"][1]["curves"][0]["last"]["value"] == 0.001);
  CHECK(data["runs"][2]["curves"].empty());
  CHECK(
      data["configs"] ==
      json::parse(R"({"labels": ["a", "b"], "rows": [{"path": "lr", "values": ["0.1", "0.2"]}]})"));
  REQUIRE(data["notes"].size() == 3);
  CHECK(data["notes"][0] == "a: lines of train/metrics.jsonl that are not metrics, left out: 1");
  CHECK(data["notes"][2].get<std::string>().starts_with("c: the config could not be read: "));

  const std::string checks = check_in_browser(folder / "logs/report.html");
  if (checks.empty()) return;
  CHECK(checks.find("labels: a: training batches *, b: training batches *\n") != std::string::npos);
  CHECK(checks.find("sections: Curves, Numbers, Configs\n") != std::string::npos);
}

TEST_CASE("runs of one name stand in a report with their times") {
  const ScratchFolder folder;
  for (const char* name : {"2026-11-21T10-00-00_a", "2026-11-21T11-00-00_a"}) {
    folder.write(std::string(name) + "/configs/train_2026-11-21T10-00-00.yaml", "a: 1\n");
  }
  CHECK(run_in(folder, "stepop report *_a both.html").out.starts_with("both.html ("));
  const json data = data_of(read_bytes(folder / "both.html"));
  CHECK(data["runs"][1]["label"] == "2026-11-21T11-00-00_a");
  CHECK(data["configs"]["rows"].empty());
}

TEST_CASE("a report goes where it is told, and what cannot be written is an error") {
  const ScratchFolder folder;
  folder.write("run/configs/train_2026-11-21T10-00-00.yaml", "a: 1\n");
  CHECK(run_in(folder, "stepop report run here.html").out.starts_with("here.html ("));
  CHECK(!fs::exists(folder / "run/report.html"));
  const auto refused = [&](const std::string& words, int exit_code, const std::string& message) {
    const CommandResult result = run_in(folder, "stepop report" + words);
    CHECK(result.err == "stepop: " + message + "\n");
    CHECK(result.exit_code == exit_code);
  };
  refused(" run page", 2,
          "stepop report: page: no such folder; give the folder of a run, logs/<time>_<name>");
  refused(" . run/configs", 2,
          ".: not the folder of a run: left out\n"
          "stepop: run/configs: not the folder of a run: left out\n"
          "stepop: stepop report: .: not the folder of a run: it has no configs/");
  // The ordinary state after one training and a debug run.
  CHECK(run_in(folder, "stepop report run run/configs").out.starts_with("run/report.html ("));
  folder.write("mine.html", "<!doctype html>\n");
  refused(
      " run mine.html", 2,
      "stepop report: mine.html: there already, and no page of stepop report; give another name");
  CHECK(read_bytes(folder / "mine.html") == "<!doctype html>\n");
  refused(" run none/here.html", 1, "cannot create none/here.html.tmp: No such file or directory");
  refused(" none", 2,
          "stepop report: none: no such folder; give the folder of a run, logs/<time>_<name>");
  CHECK(run_in(folder, "stepop report").err.starts_with("stepop: stepop report: nothing given\n"));
}

}  // namespace report_test
}  // namespace stepop
