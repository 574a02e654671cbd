#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace stepop {

/// A connection to a port of this machine.
class HttpClient {
 public:
  explicit HttpClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      throw std::runtime_error("cannot connect to port " + std::to_string(port));
    }
  }
  ~HttpClient() { ::close(socket_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void send(const std::string& bytes) const {
    if (::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("cannot send");
    }
  }

  /// Everything that arrives until the other side ends the connection.
  std::string read() const {
    std::string answer;
    std::array<char, 65536> bytes{};
    for (ssize_t count = 0; (count = ::recv(socket_, bytes.data(), bytes.size(), 0)) > 0;) {
      answer.append(bytes.data(), static_cast<size_t>(count));
    }
    return answer;
  }

 private:
  int socket_;
};

/// The whole answer to a GET of `path`; `fields` are lines that end with "\r\n".
inline std::string http_get(uint16_t port, const std::string& path,
                            const std::string& fields = "Host: localhost\r\n") {
  const HttpClient client(port);
  client.send("GET " + path + " HTTP/1.1\r\n" + fields + "\r\n");
  return client.read();
}

/// What is below an answer's head.
inline std::string body_of(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

/// The value of a field in an answer's head; empty without one.
inline std::string field_of(const std::string& answer, const std::string& name) {
  const size_t at = answer.find("\r\n" + name + ": ");
  if (at == std::string::npos || at > answer.find("\r\n\r\n")) return "";
  const size_t begin = at + name.size() + 4;
  return answer.substr(begin, answer.find("\r\n", begin) - begin);
}

}  // namespace stepop
