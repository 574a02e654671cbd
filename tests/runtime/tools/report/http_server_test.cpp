#include "runtime/tools/report/http_server.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "tests/http_client.h"

namespace stepop {
namespace http_server_test {

std::string status_of(const std::string& answer) { return answer.substr(0, answer.find("\r\n")); }

/// A server in a thread of its own, with one page, `/a`.
class Served {
 public:
  explicit Served(double patience = 10, std::string page = "<p>page</p>")
      : server_(patience), page_(std::make_shared<const std::string>(std::move(page))) {}
  ~Served() { ends_ = true; }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  uint16_t port() const { return server_.port(); }
  int64_t asked() const { return asked_; }

 private:
  HttpServer server_;
  std::shared_ptr<const std::string> page_;
  std::atomic<bool> ends_ = false;
  std::atomic<int64_t> asked_ = 0;
  std::jthread thread_{[this] {
    server_.serve(
        [this](const HttpRequest& request) {
          ++asked_;
          if (request.path != "/a") return HttpAnswer{.status = 404};
          return HttpAnswer{.type = "text/html", .body = page_, .tag = "\"1\""};
        },
        [this] { return ends_.load(); });
  }};
};

TEST_CASE("a page is served with its tag, and is not sent again to a client that has it") {
  const Served served;
  const std::string answer = http_get(served.port(), "/a?x=1");
  CHECK(status_of(answer) == "HTTP/1.1 200 OK");
  CHECK(body_of(answer) == "<p>page</p>");
  CHECK(field_of(answer, "ETag") == "\"1\"");
  CHECK(field_of(answer, "Content-Type") == "text/html");
  CHECK(field_of(answer, "Content-Length") == "11");
  const std::string same =
      http_get(served.port(), "/a", "HOST:127.0.0.1:80\r\nif-none-match: \"1\"\r\n");
  CHECK(status_of(same) == "HTTP/1.1 304 Not Modified");
  CHECK(body_of(same) == "");
  const std::string other =
      http_get(served.port(), "/a", "Host: [::1]:9\r\nIf-None-Match: \"0\"\r\n");
  CHECK(body_of(other) == "<p>page</p>");
  CHECK(status_of(http_get(served.port(), "/b")) == "HTTP/1.1 404 Not Found");
  CHECK(status_of(http_get(served.port(), "/../../etc/passwd")) == "HTTP/1.1 404 Not Found");
}

TEST_CASE("a request under a name that is not this machine's never comes to the page") {
  const Served served;
  for (const char* host : {"Host: example.org\r\n", "Host: localhost.example.org\r\n", "",
                           "Host: 127.0.0.1.example.org:80\r\n", "Host: localhost:x\r\n",
                           "Host: [::1\r\n", "Host:\r\n"}) {
    CAPTURE(host);
    CHECK(status_of(http_get(served.port(), "/a", host)) == "HTTP/1.1 403 Forbidden");
  }
  CHECK(served.asked() == 0);
}

TEST_CASE("what is no GET of HTTP/1 is refused, and the next request is answered") {
  const Served served;
  const auto answer_to = [&](const std::string& bytes) {
    const HttpClient client(served.port());
    client.send(bytes);
    return status_of(client.read());
  };
  const std::string host = "Host: localhost\r\n";
  for (const std::string method : {"POST", "HEAD", "PUT", "DELETE", "OPTIONS"}) {
    CAPTURE(method);
    CHECK(answer_to(method + " /a HTTP/1.1\r\n" + host + "\r\n") ==
          "HTTP/1.1 405 Method Not Allowed");
  }
  for (const std::string& bytes : std::vector<std::string>{
           "\r\n\r\n" + host, "GET /a\r\n" + host + "\r\n", "GET  /a  HTTP/1.1\r\n" + host + "\r\n",
           "GET a HTTP/1.1\r\n" + host + "\r\n", "GET http://x/ HTTP/1.1\r\n" + host + "\r\n",
           "GET /a HTTP/2\r\n" + host + "\r\n", "GET /a HTTP/1.1\r\n" + host + "no colon\r\n\r\n",
           "GET /a HTTP/1.1\r\n" + host + host + "\r\n",
           "GET /a HTTP/1.1\r\nHost : localhost\r\n\r\n",
           std::string("\x16\x03\x01\0\r\n\r\n", 8)}) {
    CAPTURE(bytes);
    CHECK(answer_to(bytes) == "HTTP/1.1 400 Bad Request");
  }
  CHECK(answer_to("GET /a HTTP/1.1\r\nX: " + std::string(20'000, 'x')) ==
        "HTTP/1.1 431 Request Header Fields Too Large");
  CHECK(served.asked() == 0);
  CHECK(status_of(http_get(served.port(), "/a")) == "HTTP/1.1 200 OK");
}

TEST_CASE("clients that send or take nothing keep no other waiting, and are dropped") {
  const std::string page(20'000'000, 'x');
  const Served served(/*patience=*/1, page);
  std::list<HttpClient> silent;
  // More than the server keeps open at a time.
  for (int i = 0; i < 40; ++i) silent.emplace_back(served.port());
  for (int i = 0; i < 40; ++i) {
    silent.emplace_back(served.port())
        .send(i % 2 == 0 ? "GET /a HT" : "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  CHECK(body_of(http_get(served.port(), "/a")).size() == page.size());
  CHECK(silent.front().read() == "");  // the server has closed it
}

TEST_CASE("a request that comes in parts is one") {
  const Served served;
  const HttpClient client(served.port());
  for (const char* part : {"GET /a HTTP", "/1.1\r\nHost: loc", "alhost\r\n", "\r", "\n"}) {
    client.send(part);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(body_of(client.read()) == "<p>page</p>");
}

}  // namespace http_server_test
}  // namespace stepop
