#include "runtime/tools/report/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <list>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

using HttpClock = std::chrono::steady_clock;

constexpr size_t kMostHeadBytes = 16'384;
constexpr size_t kMostConnections = 64;
constexpr int kLookMilliseconds = 200;

const char* reason_of_status(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Error";
  }
}

HttpAnswer refusal(int status, const std::string& text) {
  return {.status = status, .body = std::make_shared<const std::string>(text + "\n")};
}

std::string head_of(const HttpAnswer& answer) {
  const size_t size = answer.body ? answer.body->size() : 0;
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\n", answer.status, reason_of_status(answer.status));
  if (answer.status == 405) head += "Allow: GET\r\n";
  if (!answer.tag.empty()) head += "ETag: " + answer.tag + "\r\n";
  if (size > 0) head += "Content-Type: " + answer.type + "\r\n";
  if (answer.status != 304) head += fmt::format("Content-Length: {}\r\n", size);
  return head +
         "Cache-Control: no-cache\r\n"
         "Content-Security-Policy: frame-ancestors 'none'\r\n"
         "Cross-Origin-Resource-Policy: same-origin\r\n"
         "Referrer-Policy: no-referrer\r\n"
         "X-Content-Type-Options: nosniff\r\n"
         "Connection: close\r\n\r\n";
}

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

/// Whether a `Host` is this machine, with any port: `ssh -L` brings another.
bool is_this_machine(const std::string& host) {
  const bool is_ipv6 = host.starts_with('[');
  const size_t end = host.find(':', is_ipv6 ? host.find(']') : 0);
  const std::string name = in_lower_case(host.substr(0, end));
  if (end != std::string::npos &&
      host.find_first_not_of("0123456789", end + 1) != std::string::npos) {
    return false;
  }
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

/// Reads `GET /path HTTP/1.1` and the fields below it; false for anything else than HTTP/1.
bool read_head(std::string_view head, std::string& method, HttpRequest& request) {
  size_t end = head.find("\r\n");
  const std::string_view line = head.substr(0, end);
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == 0 || first == std::string_view::npos || last <= first) return false;
  const std::string_view version = line.substr(last + 1);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return false;
  if (!target.starts_with('/') || target.find(' ') != std::string_view::npos) return false;
  method = line.substr(0, first);
  request.path = target.substr(0, target.find('?'));
  for (size_t begin = end + 2; begin < head.size(); begin = end + 2) {
    end = head.find("\r\n", begin);
    if (end == std::string_view::npos) return false;
    if (end == begin) return true;
    const std::string_view field = head.substr(begin, end - begin);
    const size_t colon = field.find(':');
    if (colon == 0 || colon == std::string_view::npos) return false;
    const std::string name = in_lower_case(field.substr(0, colon));
    if (name.find_first_of(" \t") != std::string::npos) return false;
    const auto [place, is_new] =
        request.fields.emplace(name, without_blanks(field.substr(colon + 1)));
    if (!is_new && name == "host") return false;
  }
  return false;
}

class HttpConnection {
 public:
  HttpConnection(int socket, HttpClock::time_point now) : socket_(socket), moved_(now) {}
  ~HttpConnection() { ::close(socket_); }
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  int socket() const { return socket_; }
  int16_t events() const { return state_ == State::kWrites ? POLLOUT : POLLIN; }
  HttpClock::time_point moved() const { return moved_; }

  /// Reads or writes what is possible; false when the connection is over.
  bool move(const HttpServer::Handler& handler, HttpClock::time_point now) {
    if (state_ != State::kWrites) return read(handler, now);
    return write(now);
  }

 private:
  enum class State {
    kReads,
    kWrites,
    kDrains,  ///< The answer is sent; closed now, unread bytes would make the client lose it.
  };

  bool read(const HttpServer::Handler& handler, HttpClock::time_point now) {
    std::array<char, 4096> bytes{};
    const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    if (state_ == State::kDrains) return true;  // until the end or the client's time is over
    moved_ = head_.empty() ? now : moved_;      // a whole request has so long, not each byte
    head_.append(bytes.data(), static_cast<size_t>(count));
    const size_t end = head_.find("\r\n\r\n");
    if (end == std::string::npos && head_.size() <= kMostHeadBytes) return true;
    const bool is_long = std::min(end, head_.size()) > kMostHeadBytes;
    HttpAnswer answer = is_long ? refusal(431, "the request is longer than 16 KB")
                                : answer_http(head_.substr(0, end + 4), handler);
    head_ = head_of(answer);
    body_ = std::move(answer.body);
    state_ = State::kWrites;
    return write(now);
  }

  bool write(HttpClock::time_point now) {
    const std::string_view body = body_ ? std::string_view(*body_) : std::string_view();
    while (sent_ < head_.size() + body.size()) {
      const std::string_view rest = sent_ < head_.size() ? std::string_view(head_).substr(sent_)
                                                         : body.substr(sent_ - head_.size());
      const ssize_t count = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      sent_ += static_cast<size_t>(count);
      moved_ = now;
    }
    ::shutdown(socket_, SHUT_WR);
    body_.reset();
    state_ = State::kDrains;
    return true;
  }

  int socket_;
  HttpClock::time_point moved_;  ///< When a request began or a part of an answer was taken.
  State state_ = State::kReads;
  std::string head_;  ///< The request's; then the answer's.
  std::shared_ptr<const std::string> body_;
  size_t sent_ = 0;
};

}  // namespace

HttpAnswer answer_http(std::string_view head, const HttpServer::Handler& handler) {
  HttpRequest request;
  std::string method;
  if (!read_head(head, method, request)) return refusal(400, "expected a request of HTTP/1.1");
  if (const auto host = request.fields.find("host");
      host == request.fields.end() || !is_this_machine(host->second)) {
    return refusal(403, "expected the host localhost or 127.0.0.1");
  }
  if (method != "GET") return refusal(405, "expected GET");
  HttpAnswer answer = handler(request);
  const auto known = request.fields.find("if-none-match");
  if (answer.status == 200 && !answer.tag.empty() && known != request.fields.end() &&
      known->second == answer.tag) {
    answer.status = 304;
    answer.body = nullptr;
  }
  return answer;
}

HttpServer::HttpServer(double patience) : patience_(patience) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const own = reinterpret_cast<sockaddr*>(&address);
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0 || ::bind(socket_, own, length) != 0 || ::listen(socket_, SOMAXCONN) != 0 ||
      ::getsockname(socket_, own, &length) != 0) {
    const int error = errno;
    if (socket_ >= 0) ::close(socket_);
    throw Error(fmt::format("cannot listen on a port of 127.0.0.1: {}", std::strerror(error)));
  }
  port_ = ntohs(address.sin_port);
}

HttpServer::~HttpServer() { ::close(socket_); }

void HttpServer::serve(const Handler& handler, const std::function<bool()>& ends) {
  std::list<HttpConnection> connections;
  std::vector<pollfd> waited;
  while (!ends()) {
    waited.clear();
    for (const auto& each : connections) waited.push_back({each.socket(), each.events(), 0});
    const bool takes_more = connections.size() < kMostConnections;
    if (takes_more) waited.push_back({socket_, POLLIN, 0});
    const int ready = ::poll(waited.data(), waited.size(), kLookMilliseconds);
    if (ready < 0 && errno != EINTR) {
      throw Error(fmt::format("cannot wait for connections: {}", std::strerror(errno)));
    }
    if (ready < 0) continue;
    const auto now = HttpClock::now();
    const std::chrono::duration<double> patience(patience_);
    size_t place = 0;
    for (auto each = connections.begin(); each != connections.end();) {
      const bool can_move = waited[place++].revents != 0;
      const bool stays = now - each->moved() < patience && (!can_move || each->move(handler, now));
      each = stays ? std::next(each) : connections.erase(each);
    }
    if (!takes_more || (waited[place].revents & POLLIN) == 0) continue;
    const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket >= 0) {
      connections.emplace_back(socket, now);
    } else if (errno == EMFILE || errno == ENFILE) {
      ::poll(nullptr, 0, kLookMilliseconds);  // until another file is closed
    }
  }
}

}  // namespace stepop
