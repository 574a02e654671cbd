#include "runtime/train/distributed/silent_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>

namespace stepop {
namespace {

namespace fs = std::filesystem;

/// The port at the other end of a TCP connection; 0 for any other file.
int peer_port(int file) {
  int type = 0;
  socklen_t length = sizeof(type);
  if (::getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) return 0;
  sockaddr_storage peer{};
  length = sizeof(peer);
  if (::getpeername(file, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return 0;
  if (peer.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in*>(&peer)->sin_port);
  if (peer.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&peer)->sin6_port);
  return 0;
}

void set(int file, int level, int name, int value) {
  ::setsockopt(file, level, name, &value, sizeof(value));
}

void for_connections_to(int port, const std::function<void(int file)>& call) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", ignored)) {
    const int file = std::stoi(entry.path().filename());
    if (peer_port(file) == port) call(file);
  }
}

}  // namespace

void end_when_silent(int port, std::chrono::milliseconds limit) {
  // Linux asks the other side for a sign of life even if no data are on the way.
  const int ask_every = std::max<int>(1, static_cast<int>(limit.count() / 4000));
  // The kernel of a stopped process still answers; this limit is for the process itself.
  const timeval answer{.tv_sec = limit.count() / 1000, .tv_usec = limit.count() % 1000 * 1000};
  for_connections_to(port, [&](int file) {
    ::setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &answer, sizeof(answer));
    set(file, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(file, IPPROTO_TCP, TCP_KEEPIDLE, ask_every);
    set(file, IPPROTO_TCP, TCP_KEEPINTVL, ask_every);
    set(file, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(limit.count()));
  });
}

void break_connections(int port) {
  for_connections_to(port, [](int file) { ::shutdown(file, SHUT_RDWR); });
}

}  // namespace stepop
