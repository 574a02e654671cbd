#include "runtime/data/python/python_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <vector>

namespace stepop {
namespace {

constexpr int kPollMilliseconds = 50;
constexpr size_t kMostFiles = 2;
constexpr uint32_t kMostMessage = 2'000'000'000;

/// Room for the files that come with a message.
struct alignas(cmsghdr) Rights {
  std::array<char, CMSG_SPACE(kMostFiles * sizeof(int))> bytes{};
};

msghdr header_of(iovec& part) {
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  return header;
}

/// The first file that came; any others are closed.
OpenFile first_file(msghdr& header) {
  OpenFile first;
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    std::array<int, kMostFiles> numbers{};
    const size_t count = std::min((each->cmsg_len - CMSG_LEN(0)) / sizeof(int), kMostFiles);
    std::memcpy(numbers.data(), CMSG_DATA(each), count * sizeof(int));
    for (size_t i = 0; i < count; ++i) {
      OpenFile file(numbers[i]);
      if (!first) first = std::move(file);
    }
  }
  return first;
}

}  // namespace

std::pair<OpenFile, OpenFile> make_sockets() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail_file("make a socket for Python", errno);
  }
  return {OpenFile(ends[0]), OpenFile(ends[1])};
}

void send_bytes(const OpenFile& socket, const void* bytes, size_t size,
                const std::function<void()>& waiting, std::initializer_list<int> files) {
  const auto* next = static_cast<const char*>(bytes);
  std::vector<int> numbers(files);
  while (size > 0) {
    iovec part{const_cast<char*>(next), size};
    msghdr header = header_of(part);
    Rights rights;
    if (!numbers.empty()) {
      header.msg_control = rights.bytes.data();
      header.msg_controllen = CMSG_SPACE(numbers.size() * sizeof(int));
      cmsghdr* const first = CMSG_FIRSTHDR(&header);
      first->cmsg_level = SOL_SOCKET;
      first->cmsg_type = SCM_RIGHTS;
      first->cmsg_len = CMSG_LEN(numbers.size() * sizeof(int));
      std::memcpy(CMSG_DATA(first), numbers.data(), numbers.size() * sizeof(int));
    }
    const ssize_t sent = ::sendmsg(socket.number(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      pollfd ready{socket.number(), POLLOUT, 0};
      if (::poll(&ready, 1, kPollMilliseconds) <= 0 && waiting) waiting();
      continue;
    }
    if (sent <= 0) throw SocketClosed();
    next += sent;
    size -= static_cast<size_t>(sent);
    numbers.clear();
  }
}

void send_message(const OpenFile& socket, const std::string& message,
                  const std::function<void()>& waiting) {
  const auto length = static_cast<uint32_t>(message.size());
  std::string all(sizeof(length), '\0');
  std::memcpy(all.data(), &length, sizeof(length));
  all += message;
  send_bytes(socket, all.data(), all.size(), waiting);
}

void receive_bytes(const OpenFile& socket, void* bytes, size_t size,
                   const std::function<void()>& waiting, OpenFile* file) {
  auto* next = static_cast<char*>(bytes);
  while (size > 0) {
    pollfd ready{socket.number(), POLLIN, 0};
    if (::poll(&ready, 1, kPollMilliseconds) <= 0) {
      if (waiting) waiting();
      continue;
    }
    iovec part{next, size};
    msghdr header = header_of(part);
    Rights rights;
    header.msg_control = rights.bytes.data();
    header.msg_controllen = rights.bytes.size();
    const ssize_t received = ::recvmsg(socket.number(), &header, MSG_CMSG_CLOEXEC);
    if (received < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (received <= 0) throw SocketClosed();
    OpenFile came = first_file(header);
    if (came && file != nullptr) *file = std::move(came);
    next += received;
    size -= static_cast<size_t>(received);
  }
}

std::string receive_message(const OpenFile& socket, const std::function<void()>& waiting,
                            OpenFile* file) {
  uint32_t length = 0;
  receive_bytes(socket, &length, sizeof(length), waiting, file);
  if (length > kMostMessage) {
    throw Error(fmt::format("Python announced a message of {} bytes", length));
  }
  std::string message(length, '\0');
  receive_bytes(socket, message.data(), length, waiting);
  return message;
}

}  // namespace stepop
