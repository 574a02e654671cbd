#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace stepop {

/// A request that HttpServer passes on: a GET from this machine.
struct HttpRequest {
  std::string path;  ///< Without the query: `/data`.
  /// Header fields by their names in lower case; values without surrounding blanks.
  std::map<std::string, std::string> fields = {};
};

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body = {};  ///< Null for an empty body.
  std::string tag = {};                          ///< The ETag, with its quotes; empty for none.
};

/// Serves pages on a port of the loopback that the system chooses. Other machines cannot reach the
/// port, and a page of another site cannot either: a request whose `Host` is not this machine is
/// refused, because names of such a site may be made to lead here (DNS rebinding). Requests are at
/// most 16 KB; at most 64 connections are open, and each ends after its answer, or when the client
/// neither sends nor takes anything for `patience` seconds.
class HttpServer {
 public:
  /// Throws Error when no port can be opened.
  explicit HttpServer(double patience = 10);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const { return port_; }

  using Handler = std::function<HttpAnswer(const HttpRequest&)>;
  /// Answers in this thread until `ends` is true; looks at it five times a second. The handler must
  /// return soon, since all clients wait meanwhile.
  void serve(const Handler& handler, const std::function<bool()>& ends);

 private:
  int socket_ = -1;
  uint16_t port_ = 0;
  double patience_;
};

/// The answer to all bytes of a request's head, up to and including the empty line: the handler's,
/// or an error's.
HttpAnswer answer_http(std::string_view head, const HttpServer::Handler& handler);

}  // namespace stepop
