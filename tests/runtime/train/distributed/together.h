#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/train/distributed/world.h"

namespace stepop {

/// A port of this machine on which nobody listens now.
inline int free_test_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  const bool has_one = ::bind(socket, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                       ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  ::close(socket);
  if (!has_one) throw std::runtime_error("no port can be taken");
  return ntohs(address.sin_port);
}

/// Seconds that processes of a test may take, on a machine that has much else to do.
inline constexpr int kLongest = 120;

/// Calls `work` in a process for each of `places`, which are children of this one. Returns what
/// each returned, or `PeerError: ` / `Interrupted <exit code>: ` / `Error: ` and the message of
/// what it threw; `signal 9` of one that was killed. What is not over after `kLongest` is killed.
inline std::vector<std::string> in_processes(const std::vector<Place>& places,
                                             const std::function<std::string(const Place&)>& work) {
  struct Child {
    pid_t process;
    int pipe;
  };
  std::vector<Child> children;
  std::fflush(nullptr);
  for (const Place& place : places) {
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    const pid_t process = ::fork();
    if (process > 0) {
      ::close(pipe[1]);
      children.push_back({process, pipe[0]});
      continue;
    }
    if (process < 0) throw std::runtime_error("no process");
    std::string text;
    try {
      text = work(place);
    } catch (const PeerError& error) {
      text = fmt::format("PeerError: {}", error.what());
    } catch (const Interrupted& error) {
      text = fmt::format("Interrupted {}: {}", error.exit_code(), error.what());
    } catch (const std::exception& error) {
      text = fmt::format("Error: {}", error.what());
    }
    for (size_t at = 0; at < text.size();) {
      const ssize_t written = ::write(pipe[1], text.data() + at, text.size() - at);
      if (written <= 0) break;
      at += static_cast<size_t>(written);
    }
    ::_exit(0);
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(kLongest);
  std::vector<std::string> texts;
  for (const Child& child : children) {
    std::string text;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                            until - std::chrono::steady_clock::now())
                            .count();
      pollfd ready{child.pipe, POLLIN, 0};
      if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) {
        ::kill(child.process, SIGKILL);
        text = fmt::format("it was not over after {} seconds", kLongest);
        break;
      }
      char buffer[4096];
      const ssize_t count = ::read(child.pipe, buffer, sizeof(buffer));
      if (count <= 0) break;
      text.append(buffer, static_cast<size_t>(count));
    }
    ::close(child.pipe);
    int status = 0;
    ::waitpid(child.process, &status, 0);
    if (WIFSIGNALED(status) && text.empty()) text = fmt::format("signal {}", WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
      text = fmt::format("exit code {}", WEXITSTATUS(status));
    }
    texts.push_back(text);
  }
  return texts;
}

/// The places of `size` processes of this machine that find each other.
inline std::vector<Place> places_of(int size) {
  const int port = free_test_port();
  std::vector<Place> places;
  for (int rank = 0; rank < size; ++rank) {
    places.push_back(
        {.rank = rank, .size = size, .local_rank = rank, .local_size = size, .port = port});
  }
  return places;
}

/// `work` in `size` processes that have met; one that fails reports it to the others as the program
/// does. See `in_processes`.
inline std::vector<std::string> together(int size, const std::function<std::string(World&)>& work) {
  return in_processes(places_of(size), [&](const Place& place) {
    const std::unique_ptr<World> world = World::join(place, {});
    try {
      std::string text = work(*world);
      world->finish();
      return text;
    } catch (const std::exception& error) {
      const auto* ours = dynamic_cast<const Error*>(&error);
      world->report_failure(error.what(), ours != nullptr ? ours->exit_code() : 1);
      throw;
    }
  });
}

}  // namespace stepop
