// `stepop report --live RUN ...`, as a process and in a browser.

#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/core/pictures/image_file.h"
#include "runtime/tools/report/live_page.h"
#include "tests/cli/browser.h"
#include "tests/cli/digits_run.h"
#include "tests/http_client.h"

namespace stepop {
namespace report_live_test {

using nlohmann::json;

std::string line(int step) {
  return fmt::format(
      "{{\"step\":{},\"epoch\":{},\"samples\":1,\"time\":{},\"train/log_op/loss\":{}}}\n", step,
      step * 0.1, step * 2, 1.0 / step);
}

void make_run(const ScratchFolder& folder, const std::string& name) {
  folder.write(name + "/configs/train_2026-11-21T10-00-00.yaml", "a: 1\n");
  folder.write(name + "/train/metrics.jsonl", line(1) + line(2));
  folder.write(name + "/train/log.txt", "first\n");
}

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

/// Starts `stepop report --live` in the background; in the lines `after`, `get PATH HOST` prints an
/// answer and `$!` is the process.
CommandResult serve(const ScratchFolder& folder, const std::string& words,
                    const std::string& after) {
  const std::string get =
      "get() { exec 3<>/dev/tcp/127.0.0.1/$port; "
      "printf 'GET %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' \"$1\" \"$2\" >&3; cat <&3; }; ";
  return run_in(folder, kUntil + get + "'" STEPOP_BINARY_DIR "/stepop' report --live " + words +
                            " >url & until_ok 'grep http: url'; IFS=:/ read -r _ _ _ _ port path "
                            "<url; " +
                            after);
}

TEST_CASE("report --live serves the page on this machine alone, writes nothing, ends by Ctrl-C") {
  const ScratchFolder folder;
  make_run(folder, "run");
  const CommandResult result =
      serve(folder, "run",
            "get /$path/ localhost >page; get /$path/data localhost >data; get / localhost >none; "
            "get /$path/ example.org >other; find run -type f | sort; "
            "kill -INT $!; wait $!");
  CHECK(result.err == "");
  CHECK(result.exit_code == 0);
  CHECK(result.out ==
        "run/configs/train_2026-11-21T10-00-00.yaml\nrun/train/log.txt\nrun/train/metrics.jsonl\n");
  CHECK(read_bytes(folder / "url").starts_with("http://127.0.0.1:"));
  CHECK(body_of(read_bytes(folder / "page")).starts_with("<!doctype html>"));
  const json data = json::parse(body_of(read_bytes(folder / "data")));
  CHECK(data["curves"][0]["steps"] == json({1, 2}));
  CHECK(read_bytes(folder / "none").starts_with("HTTP/1.1 404 "));
  CHECK(read_bytes(folder / "other").starts_with("HTTP/1.1 403 "));
}

TEST_CASE("report --live says which folders it cannot show, and shows runs as they begin") {
  const ScratchFolder folder;
  make_run(folder, "made");
  folder.write("logs/debug_runs/here", "");
  const CommandResult result =
      serve(folder, "logs",
            "get /$path/data localhost >before; mv made logs/2026-11-21T10-00-00_a; "
            "until_ok 'get /$path/data localhost | grep log_op/loss'; kill -TERM $!; wait $!");
  CHECK(result.err == "stepop: logs: there is no run yet; each is shown when it is there\n");
  CHECK(result.exit_code == 128 + 15);
  CHECK(json::parse(body_of(read_bytes(folder / "before")))["runs"].empty());
  const auto refused = [&](const std::string& words, const std::string& message) {
    const CommandResult failed = run_in(folder, "stepop report --live" + words);
    CHECK(failed.err == "stepop: stepop report: " + message + "\n");
    CHECK(failed.exit_code == 2);
  };
  refused(" none", "none: no such folder; give the folder of a run, logs/<time>_<name>");
  refused(" logs/*_a page.html", "page.html: --live writes no file; leave out the file, or --live");
}

/// Opens the page of `runs` where there is a browser. `change` is called when the page asks for its
/// data first; the checks of report_live_checks.js wait for it.
std::string check_live(LivePage& page, const std::function<void()>& change) {
  static const std::string browser = find_browser();
  if (browser.empty()) {
    MESSAGE("not opened in a browser: there is none; `apt-get install chromium` brings one");
    return "";
  }
  HttpServer server;
  std::atomic<bool> ends = false;
  int asked = 0;
  std::jthread serving([&] {
    server.serve(
        [&](const HttpRequest& request) {
          HttpAnswer answer = page.answer(request);
          if (request.path == page.path()) {
            std::string text = *answer.body;
            text.insert(text.rfind("</body>"),
                        "<script>" +
                            read_bytes(STEPOP_SOURCE_DIR "/tests/cli/report_live_checks.js") +
                            "</script>\n");
            answer.body = std::make_shared<const std::string>(text);
          } else if (request.path.ends_with("/data") && ++asked == 2) {
            change();
            for (const std::string before = answer.tag; answer.tag == before;) {
              std::this_thread::sleep_for(std::chrono::milliseconds(2));
              answer = page.answer(request);
            }
          }
          return answer;
        },
        [&] { return ends.load(); });
  });
  const OpenedPage opened =
      open_address(browser, fmt::format("http://localhost:{}{}", server.port(), page.path()));
  ends = true;
  CHECK(opened.console == "");
  const size_t begin = opened.document.find("<pre id=\"checks\">");
  REQUIRE(begin != std::string::npos);
  std::string checks = opened.document.substr(begin);
  CAPTURE(checks);
  CHECK(checks.find("FAILED") == std::string::npos);
  CHECK(checks.find("ok: the page came to its end") != std::string::npos);
  return checks;
}

TEST_CASE("a page that is open shows what a run logs, and keeps what its reader chose") {
  const ScratchFolder folder;
  std::vector<RunDirectory> runs;
  const auto picture = [&](const std::string& run, const std::string& name, int step) {
    const at::Tensor pixels = at::full({4, 4, 3}, 10 * step, at::kByte);
    folder.write(fmt::format("{}/train/train/log_op/{}_{:07}.png", run, name, step),
                 encode_png(pixels));
  };
  bool is_comparison = false;
  SUBCASE("one run") {}
  SUBCASE("several") { is_comparison = true; }
  for (const std::string run : {"a", "b"}) {
    if (run == "b" && !is_comparison) break;
    make_run(folder, run);
    runs.push_back(RunDirectory::at(folder.path(run)));
    for (const int step : {1, 2}) {
      picture(run, "fake", step);
      picture(run, "real", step);
    }
  }
  LivePage page([&] { return runs; },
                {.is_comparison = is_comparison, .pause = std::chrono::seconds(0), .rest = 0});
  const std::string checks = check_live(page, [&] {
    picture("a", "fake", 3);
    picture("a", "real", 3);
    append(folder.path("a/train/log.txt"), "second\n");
    append(folder.path("a/train/metrics.jsonl"), line(3));
  });
  if (checks.empty()) return;
  CHECK(checks.find("pictures: step 1, step 3") != std::string::npos);
}

}  // namespace report_live_test
}  // namespace stepop
