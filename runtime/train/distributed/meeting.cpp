#include "runtime/train/distributed/meeting.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#define USE_C10D_GLOO  // Without it the headers of c10d leave out Gloo.
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/shown_text.h"
#include "runtime/core/base/text.h"
#include "runtime/train/distributed/silent_connections.h"

namespace stepop {
namespace {

using Clock = std::chrono::steady_clock;
using Gloo = c10d::ProcessGroupGloo;

constexpr std::chrono::seconds kMeetWithin{300};
constexpr std::chrono::seconds kLongest{std::chrono::hours(24 * 365)};
/// To open a store, or a second connection to one; where the cores are busy that may take seconds.
constexpr std::chrono::seconds kOpenWithin{30};
/// To reach a store that may not be there yet, before the next attempt.
constexpr std::chrono::seconds kTryFor{2};
constexpr std::chrono::milliseconds kLookAgain{5};
constexpr std::chrono::seconds kSayEvery{10};
/// A store answers at once; another program that has its port may never do.
constexpr std::chrono::seconds kAnswerWithin{10};
/// Why the processes do not fit together.
constexpr const char* kRefused = "refused";
constexpr const char* kNames = "names";
constexpr const char* kConnected = "connected";

/// The address of this machine at which other machines that know `host` reach it.
std::string address_towards(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return {};
  std::string address;
  for (const addrinfo* each = found; each != nullptr && address.empty(); each = each->ai_next) {
    const int socket = ::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    std::array<char, NI_MAXHOST> name{};
    if (::connect(socket, each->ai_addr, each->ai_addrlen) == 0 &&  // sends nothing
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, name.data(), name.size(), nullptr,
                      0, NI_NUMERICHOST) == 0) {
      address = name.data();
    }
    ::close(socket);
  }
  ::freeaddrinfo(found);
  return address;
}

/// Makes the network interface, with Gloo's thread that waits for incoming data. While a
/// connection is being written to, that thread polls for data; if it displaces the writing
/// thread, both stop for up to 4 ms. So the thread must not preempt others.
std::shared_ptr<gloo::transport::Device> make_device(const Place& place) {
  const char* const interface = std::getenv("GLOO_SOCKET_IFNAME");
  const std::string address = address_towards(place.host, place.port);
  return std::async(std::launch::async,
                    [&] {
                      const sched_param none{};
                      ::sched_setscheduler(0, SCHED_BATCH, &none);  // this thread and its children
                      return interface != nullptr ? Gloo::createDeviceForInterface(interface)
                             : address.empty()    ? Gloo::createDefaultDevice()
                                                  : Gloo::createDeviceForHostname(address);
                    })
      .get();
}

/// Finds the other processes.
class Meeter {
 public:
  Meeter(const Place& place, const InterruptCheck& interrupt)
      : place_(place), interrupt_(interrupt) {}

  Meeting meet() {
    connect();
    introduce();
    if (place_.rank == 0) set(kNames, write_json(nlohmann::json(names_of_all())));
    read_names();
    make_group();
    wait_for_connections();
    return std::move(met_);
  }

 private:
  std::string key_of(const char* what, int rank) const { return fmt::format("{}/{}", what, rank); }

  void set(const std::string& key, const std::string& value) {
    met_.store->set(key, std::vector<uint8_t>(value.begin(), value.end()));
  }

  std::string get(const std::string& key) {
    const std::vector<uint8_t> value = met_.store->get(key);
    return {value.begin(), value.end()};
  }

  /// Called between two attempts; false when the time is over. Throws when the processes do not fit
  /// together.
  bool may_wait() {
    if (interrupt_) interrupt_();
    if (place_.has_store && ::getppid() != parent_) throw Error("torchrun is gone");
    if (met_.store && met_.store->check({kRefused})) {
      const std::string why = get(kRefused);
      // The others read the reason from the store that rank 0 keeps.
      if (place_.rank == 0 && !place_.has_store) std::this_thread::sleep_for(kHeardWithin);
      throw Error(why);
    }
    return Clock::now() - begin_ < kMeetWithin;
  }

  /// Prints a message from time to time while the process waits.
  void say(const std::string& text) {
    if (Clock::now() - said_ < kSayEvery) return;
    said_ = Clock::now();
    fmt::print(stderr, "stepop: {}\n", shown_text(text));
  }

  /// Ends all processes that are here.
  void refuse(const std::string& why) {
    met_.store->compareSet(kRefused, {}, std::vector<uint8_t>(why.begin(), why.end()));
    may_wait();
  }

  /// Opens the port only at the host's address, so that the port is not reachable through this
  /// machine's other networks. Returns -1 if the host has no address here under which other
  /// machines would find it: a name that refers to the machine itself (Debian's 127.0.1.1) may be
  /// another address elsewhere.
  int listening_socket() const {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(place_.port);
    if (::getaddrinfo(place_.host.c_str(), port.c_str(), &hints, &found) != 0) return -1;
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
    const bool is_here = place_.local_size == place_.size || place_.host == "localhost" ||
                         place_.host.starts_with("127.") || place_.host == "::1";
    const auto is_loopback = [](const addrinfo& address) {
      const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(address.ai_addr);
      const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(address.ai_addr);
      return address.ai_family == AF_INET ? (ntohl(ipv4->sin_addr.s_addr) >> 24) == 127
                                          : IN6_IS_ADDR_LOOPBACK(&ipv6->sin6_addr) != 0;
    };
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
      if (is_loopback(*each) && !is_here) continue;
      const int socket = ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const int on = 1;
      if (socket >= 0 && ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
          ::bind(socket, each->ai_addr, each->ai_addrlen) == 0) {
        return socket;
      }
      if (socket >= 0) ::close(socket);
    }
    return -1;
  }

  /// c10d has a limit for the connection, none for the first answer.
  c10::intrusive_ptr<c10d::Store> answering_store(const c10d::TCPStoreOptions& options) const {
    auto opening = std::async(std::launch::async, [&] {
      return c10::intrusive_ptr<c10d::Store>(
          c10::make_intrusive<c10d::TCPStore>(place_.host, options));
    });
    const auto end = Clock::now() + options.timeout + kAnswerWithin;
    bool is_silent = false;
    std::exception_ptr asked;
    while (opening.wait_for(kLookAgain) != std::future_status::ready) {
      try {
        if (interrupt_ && !asked) interrupt_();
      } catch (...) {
        asked = std::current_exception();
      }
      is_silent = Clock::now() > end;
      if (asked || is_silent) break_connections(place_.port);  // the thread's call fails then
    }
    if (asked) std::rethrow_exception(asked);
    try {
      return opening.get();
    } catch (const std::exception&) {
      if (!is_silent) throw;
    }
    throw Error(fmt::format(
        "rank {} of {}: what listens at {}, port {}, takes connections and did not answer for {} "
        "seconds: it is another program, or rank 0 is stopped\nanother port: MASTER_PORT, the same "
        "for all processes",
        place_.rank, place_.size, place_.host, place_.port, kAnswerWithin.count()));
  }

  /// `within`: the time limit for the connection.
  c10::intrusive_ptr<c10d::Store> open_store(bool listens, std::chrono::seconds within) const {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(place_.port);
    options.isServer = listens;
    options.waitWorkers = false;
    if (const int socket = listens ? listening_socket() : -1; socket >= 0) {
      options.masterListenFd = socket;  // from now on the socket belongs to the store
    }
    options.timeout = within;
    c10::intrusive_ptr<c10d::Store> store = answering_store(options);
    store->setTimeout(kMeetWithin);
    return c10::make_intrusive<c10d::PrefixStore>(
        fmt::format("stepop/{}/{}", environment_variable("STEPOP_SECRET").value_or(""),
                    place_.attempt),
        std::move(store));
  }

  void connect() {
    if (place_.rank == 0 && !place_.has_store) {
      try {
        met_.store = open_store(/*listens=*/true, kOpenWithin);
      } catch (const Error&) {
        throw;
      } catch (const std::exception& error) {
        throw Error(fmt::format(
            "rank 0 cannot listen on port {} of {}: {}\nanother port: MASTER_PORT, the same for "
            "all processes",
            place_.port, place_.host, reason_of(error)));
      }
    }
    while (!met_.store) {
      try {
        met_.store = open_store(/*listens=*/false, kTryFor);
      } catch (const Error&) {
        throw;
      } catch (const std::exception& error) {
        if (place_.local_rank == 0) {
          say(fmt::format("waiting for rank 0 of {} processes, at {}, port {}", place_.size,
                          place_.host, place_.port));
        }
        if (may_wait()) continue;
        throw Error(fmt::format(
            "rank {} of {}: rank 0 cannot be reached at {}, port {}, within {} seconds: {}\nit "
            "has to run, on the machine that MASTER_ADDR names, with the same MASTER_PORT",
            place_.rank, place_.size, place_.host, place_.port, kMeetWithin.count(),
            reason_of(error)));
      }
    }
    met_.watch_store = open_store(/*listens=*/false, kOpenWithin);
    end_when_silent(place_.port, kMeetWithin);
  }

  /// Publishes this process's name and rank.
  void introduce() {
    if (met_.store->add(key_of("taken", place_.rank), 1) > 1) {
      refuse(fmt::format(
          "two processes have the rank {} of {}: each needs its own, and a second training on "
          "these machines needs a MASTER_PORT of its own (now {})",
          place_.rank, place_.size, place_.port));
    }
    const nlohmann::json about{
        {"size", place_.size}, {"host", own_host()}, {"process", ::getpid()}};
    set(key_of("hello", place_.rank), write_json(about));
  }

  std::vector<std::string> missing() {
    std::vector<std::string> ranks;
    for (int rank = 0; rank < place_.size; ++rank) {
      if (!met_.store->check({key_of("hello", rank)})) ranks.push_back(std::to_string(rank));
    }
    return ranks;
  }

  /// Rank 0 waits for all processes, and checks whether they fit together.
  std::vector<std::string> names_of_all() {
    for (;;) {
      const std::vector<std::string> absent = missing();
      if (absent.empty()) break;
      if (!may_wait()) {
        throw Error(fmt::format("of {} processes, these did not connect within {} seconds: rank {}",
                                place_.size, kMeetWithin.count(), list_text(absent)));
      }
      say(fmt::format("waiting for rank {} of {} processes", list_text(absent), place_.size));
      std::this_thread::sleep_for(kLookAgain);
    }
    std::vector<std::string> names;
    for (int rank = 0; rank < place_.size; ++rank) {
      const auto about = read_json(get(key_of("hello", rank)));
      names.push_back(fmt::format("rank {} on {}, process {}", rank,
                                  about.at("host").get<std::string>(),
                                  about.at("process").get<int>()));
      if (about.at("size") == place_.size) continue;
      refuse(fmt::format("{} was started as one of {} processes, rank 0 as one of {}", names.back(),
                         about.at("size").get<int>(), place_.size));
    }
    return names;
  }

  void read_names() {
    while (!met_.store->check({kNames})) {
      if (!may_wait()) throw Error("rank 0 is waiting for processes that have not connected");
      std::this_thread::sleep_for(kLookAgain);
    }
    met_.names = read_json(get(kNames)).get<std::vector<std::string>>();
    if (static_cast<int>(met_.names.size()) == place_.size) return;
    throw Error(fmt::format("rank {} was started as one of {} processes, rank 0 as one of {}",
                            place_.rank, place_.size, met_.names.size()));
  }

  void make_group() {
    met_.group = c10::make_intrusive<c10d::ProcessGroup>(met_.store, place_.rank, place_.size);
    met_.group->setBackend(
        c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO,
        connect_gloo(place_, c10::make_intrusive<c10d::PrefixStore>("gloo", met_.store)));
    met_.group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  }

  /// Nobody leaves before each is connected with each: a process that fails and ends at once would
  /// break the connections of others before these can hear why.
  void wait_for_connections() {
    met_.store->add(kConnected, 1);
    while (met_.store->add(kConnected, 0) < place_.size) {
      if (!may_wait()) throw Error("some processes did not connect to all others");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const Place& place_;
  const InterruptCheck& interrupt_;
  const Clock::time_point begin_ = Clock::now();
  const pid_t parent_ = ::getppid();
  Clock::time_point said_ = begin_;
  Meeting met_;
};

}  // namespace

std::string own_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

std::string reason_of(const std::exception& error) {
  const std::string text = error_text(error);
  return text.substr(0, text.find('\n'));
}

c10::intrusive_ptr<c10d::Backend> connect_gloo(const Place& place,
                                               const c10::intrusive_ptr<c10d::Store>& store) {
  const auto options = Gloo::Options::create(kLongest);
  options->devices.push_back(make_device(place));
  return c10::make_intrusive<Gloo>(store, place.rank, place.size, options);
}

Meeting meet(const Place& place, const InterruptCheck& interrupt) {
  try {
    return Meeter(place, interrupt).meet();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(fmt::format(
        "rank {} of {}: the connection to rank 0 at {}, port {}, broke before all were there: {}",
        place.rank, place.size, place.host, place.port, reason_of(error)));
  }
}

}  // namespace stepop
