#include "runtime/distributed/link.h"

#include <ATen/core/jit_type.h>
#include <arpa/inet.h>
#include <c10/util/Flags.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#define USE_C10D_GLOO  // The headers of c10d leave Gloo out without it.
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

C10_DECLARE_int(caffe2_log_level);  // of c10's own log, on the standard error

namespace stepop {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::chrono::seconds kMeetWithin{300};
constexpr std::chrono::milliseconds kLookEvery{250};
constexpr std::chrono::seconds kLongest{std::chrono::hours(24 * 365)};
/// A process that cannot say why it ends, such as one that was killed, leaves connections that
/// break. So long others wait for its reason before they say so.
constexpr std::chrono::seconds kReasonWithin{3};
/// A process without a heartbeat for so long is gone, or its machine is.
constexpr double kSilence = 60;
/// After a failure the main thread may be where nothing reaches it; or rank 0 may do something
/// useful, such as callbacks.
constexpr std::chrono::seconds kStuckAfter{15};
constexpr std::chrono::seconds kBusyAtMost{60};
constexpr const char* kFailure = "failure";
/// Rank 0, which keeps the store, waits so long for the others to read in it why all end.
constexpr std::chrono::milliseconds kHeardWithin{1500};
/// Why the processes that are meeting do not fit together.
constexpr const char* kRefused = "refused";

std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

/// The address of this machine at which others that know `host` reach it.
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

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string own_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

std::string to_text(const Failure& failure) {
  return nlohmann::json{
      {"rank", failure.rank}, {"exit_code", failure.exit_code}, {"text", failure.text}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Failure failure_of(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {.text = text};
  return {.rank = json.value("rank", -1),
          .exit_code = json.value("exit_code", 1),
          .text = json.value("text", "")};
}

/// What a heartbeat says.
struct Life {
  int64_t started = -1;  ///< Operations that the process began.
  int64_t step = 0;
  bool waits = false;
};

Life life_of(const std::string& beat) {
  Life life;
  long long number = 0;
  long long started = -1;
  long long step = 0;
  int waits = 0;
  if (std::sscanf(beat.c_str(), "%lld %lld %lld %d", &number, &started, &step, &waits) == 4) {
    life = {started, step, waits != 0};
  }
  return life;
}

}  // namespace

Link::Link(const Place& place, const InterruptCheck& interrupt) : place_(place) {
  // Connections that break, or come late, are reported here, in a sentence.
  constexpr int kFatal = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatal;
  try {
    meet(interrupt);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(fmt::format(
        "rank {} of {}: the connection to rank 0 at {}, port {}, broke before all were there: {}",
        place_.rank, place_.size, place_.host, place_.port, first_line(error_text(error))));
  }
  others_.resize(static_cast<size_t>(place_.size));
  for (Beat& other : others_) other.since = Clock::now();
  watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

Link::~Link() = default;

void Link::meet(const InterruptCheck& interrupt) {
  const auto begin = Clock::now();
  const bool is_root = place_.rank == 0;
  const auto connect = [&](bool listens) {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(place_.port);
    options.isServer = listens;
    options.waitWorkers = false;
    options.timeout = std::chrono::seconds(listens ? 30 : 2);
    c10::intrusive_ptr<c10d::Store> store =
        c10::make_intrusive<c10d::TCPStore>(place_.host, options);
    store->setTimeout(kMeetWithin);
    return c10::intrusive_ptr<c10d::Store>(c10::make_intrusive<c10d::PrefixStore>(
        fmt::format("stepop/{}", place_.attempt), std::move(store)));
  };
  const auto rest = [&] {
    if (interrupt) interrupt();
    if (store_ && store_->check({kRefused})) {
      const std::string why = text_of(store_->get(kRefused));
      // The others read it from the store that rank 0 keeps.
      if (is_root && !place_.has_store) std::this_thread::sleep_for(kHeardWithin);
      throw Error(why);
    }
    return Clock::now() - begin < kMeetWithin;
  };
  // Ends all that are here.
  const auto refuse = [&](const std::string& why) {
    store_->compareSet(kRefused, {}, bytes_of(why));
    rest();
  };
  if (is_root && !place_.has_store) {
    try {
      store_ = connect(/*listens=*/true);
    } catch (const std::exception& error) {
      throw Error(fmt::format(
          "rank 0 cannot listen on port {} of {}: {}\nanother port: MASTER_PORT, the same for all "
          "processes",
          place_.port, place_.host, first_line(error_text(error))));
    }
  }
  while (!store_) {
    try {
      store_ = connect(/*listens=*/false);
    } catch (const std::exception& error) {
      if (rest()) continue;
      throw Error(fmt::format(
          "rank {} of {}: rank 0 is not to be reached at {}, port {}, within {} seconds: {}\nit "
          "has to run, on the machine that MASTER_ADDR names, with the same MASTER_PORT",
          place_.rank, place_.size, place_.host, place_.port, kMeetWithin.count(),
          first_line(error_text(error))));
    }
  }
  watch_store_ = connect(/*listens=*/false);

  // Everybody says who it is; rank 0 looks whether they fit together, and names them to all.
  const std::string hello =
      nlohmann::json{{"size", place_.size}, {"host", own_host()}, {"process", ::getpid()}}.dump();
  if (store_->add(fmt::format("taken/{}", place_.rank), 1) > 1) {
    refuse(fmt::format(
        "two processes have the rank {} of {}: each needs its own, and a second training on these "
        "machines needs a MASTER_PORT of its own (now {})",
        place_.rank, place_.size, place_.port));
  }
  set(fmt::format("hello/{}", place_.rank), hello);
  if (is_root) {
    auto said = begin;
    std::vector<std::string> missing;
    for (;;) {
      missing.clear();
      for (int rank = 0; rank < place_.size; ++rank) {
        if (!store_->check({fmt::format("hello/{}", rank)}))
          missing.push_back(std::to_string(rank));
      }
      if (missing.empty()) break;
      if (!rest()) {
        throw Error(fmt::format("of {} processes these did not come within {} seconds: rank {}",
                                place_.size, kMeetWithin.count(), list_text(missing)));
      }
      if (Clock::now() - said > std::chrono::seconds(10)) {
        said = Clock::now();
        fmt::print(stderr, "stepop: waiting for rank {} of {} processes\n", list_text(missing),
                   place_.size);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    nlohmann::json names = nlohmann::json::array();
    for (int rank = 0; rank < place_.size; ++rank) {
      const auto about = nlohmann::json::parse(text_of(store_->get(fmt::format("hello/{}", rank))));
      names.push_back(fmt::format("rank {} on {}, process {}", rank,
                                  about.at("host").get<std::string>(),
                                  about.at("process").get<int>()));
      if (about.at("size") != place_.size) {
        refuse(fmt::format("{} was started as one of {} processes, rank 0 as one of {}",
                           names.back().get<std::string>(), about.at("size").get<int>(),
                           place_.size));
      }
    }
    set("names", names.dump());
  }
  while (!store_->check({"names"})) {
    if (!rest()) throw Error("rank 0 waits for processes that do not come");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  names_ = nlohmann::json::parse(text_of(store_->get("names"))).get<std::vector<std::string>>();
  if (static_cast<int>(names_.size()) != place_.size) {
    throw Error(fmt::format("rank {} was started as one of {} processes, rank 0 as one of {}",
                            place_.rank, place_.size, names_.size()));
  }

  const auto options = c10d::ProcessGroupGloo::Options::create(kLongest);
  const std::string address = address_towards(place_.host, place_.port);
  options->devices.push_back(
      std::getenv("GLOO_SOCKET_IFNAME") != nullptr
          ? c10d::ProcessGroupGloo::createDeviceForInterface(std::getenv("GLOO_SOCKET_IFNAME"))
      : address.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                        : c10d::ProcessGroupGloo::createDeviceForHostname(address));
  const auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>("gloo", store_), place_.rank, place_.size, options);
  group_ = c10::make_intrusive<c10d::ProcessGroup>(store_, place_.rank, place_.size);
  group_->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO,
                     c10::intrusive_ptr<c10d::Backend>(gloo));
  group_->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
}

void Link::wait(const c10::intrusive_ptr<c10d::Work>& work) {
  started_.fetch_add(1, std::memory_order_relaxed);
  const auto mine = [&] {
    const std::lock_guard lock(mutex_);
    return pending_.insert(pending_.end(), Clock::now());
  }();
  const auto over = [&] {
    const std::lock_guard lock(mutex_);
    pending_.erase(mine);
  };
  try {
    const auto future = work->getFuture();
    for (;;) {
      // A look at the clock in between: the operation itself has no time limit.
      if (work->isCompleted()) break;
      bool is_done = true;
      try {
        work->wait(kLookEvery);
      } catch (const std::exception&) {
        is_done = work->isCompleted();
      }
      if (is_done) break;
      if (failure()) throw peer_error("");
    }
    if (const auto error = work->exception()) std::rethrow_exception(error);
    over();
  } catch (const PeerError&) {
    over();
    throw;
  } catch (const std::exception& error) {
    over();
    throw peer_error(error_text(error));
  }
}

c10::intrusive_ptr<c10::ivalue::Future> Link::guarded(const c10::intrusive_ptr<c10d::Work>& work) {
  started_.fetch_add(1, std::memory_order_relaxed);
  const auto guarded =
      c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  Pending::iterator mine;
  std::list<c10::intrusive_ptr<c10::ivalue::Future>>::iterator place;
  {
    const std::lock_guard lock(mutex_);
    mine = pending_.insert(pending_.end(), Clock::now());
    place = futures_.insert(futures_.end(), guarded);
  }
  // What is over by now calls this at once.
  work->getFuture()->addCallback([this, guarded, mine, place](c10::ivalue::Future& done) {
    {
      const std::lock_guard inner(mutex_);
      pending_.erase(mine);
      futures_.erase(place);
    }
    if (guarded->completed()) return;  // a failure was known before
    if (done.hasError()) {
      guarded->setErrorIfNeeded(
          std::make_exception_ptr(peer_error(done.tryRetrieveErrorMessage())));
    } else {
      guarded->markCompleted(done.value());
    }
  });
  return guarded;
}

void Link::set(const std::string& key, const std::string& value) {
  store_->set(key, bytes_of(value));
}

std::string Link::wait_for(const std::string& key) {
  auto rest = std::chrono::microseconds(100);
  try {
    while (!store_->check({key})) {
      if (failure()) throw peer_error("");
      std::this_thread::sleep_for(rest);
      rest = std::min(rest * 2, std::chrono::microseconds(20'000));
    }
    return text_of(store_->get(key));
  } catch (const PeerError&) {
    throw;
  } catch (const std::exception& error) {
    throw peer_error(error_text(error));
  }
}

std::optional<Failure> Link::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

PeerError Link::peer_error(const std::string& what) {
  is_ending_ = true;
  // The one that failed says why before it closes its connections; the watch reads it.
  const std::vector<std::string> before = failure() ? std::vector<std::string>() : beats_of_all();
  const auto until = Clock::now() + kReasonWithin;
  while (!failure() && Clock::now() < until) std::this_thread::sleep_for(kLookEvery / 10);
  if (!failure()) {
    const std::vector<std::string> silent = silent_since(before);
    const Failure gone{
        .text = fmt::format(
            "{} is gone: it was killed, or the network failed; its launcher says more{}",
            silent.empty() ? "another process" : list_text(silent),
            silent.empty() ? fmt::format("\n  {}", first_line(what)) : "")};
    report(gone);  // all say the same
    fail(gone);
  }
  const Failure known = *failure();
  const bool is_own = known.rank < 0 || known.rank == place_.rank;
  return PeerError(is_own
                       ? known.text
                       : fmt::format("{}: {}", names_[static_cast<size_t>(known.rank)], known.text),
                   known.exit_code);
}

/// By rank; empty when the store is gone.
std::vector<std::string> Link::beats_of_all() {
  std::vector<std::string> beats;
  try {
    for (int rank = 0; rank < place_.size; ++rank) {
      const std::string key = fmt::format("beat/{}", rank);
      beats.push_back(store_->check({key}) ? text_of(store_->get(key)) : "");
    }
  } catch (const std::exception&) {
    beats.clear();
  }
  return beats;
}

/// Those whose hearts did not beat since they were `before`, some seconds ago.
std::vector<std::string> Link::silent_since(const std::vector<std::string>& before) {
  const std::vector<std::string> now = beats_of_all();
  std::vector<std::string> names;
  for (size_t rank = 0; rank < now.size() && rank < before.size(); ++rank) {
    const bool is_own = static_cast<int>(rank) == place_.rank;
    if (!is_own && now[rank] == before[rank]) names.push_back(names_[rank]);
  }
  return names;
}

void Link::report(const Failure& failure) noexcept {
  is_ending_ = true;
  try {
    // The first one counts.
    if (!this->failure()) {
      watch_store_->compareSet(kFailure, {}, bytes_of(to_text(failure)));
    }
  } catch (const std::exception&) {  // nobody is left to be told
  }
}

void Link::leave() noexcept {
  try {
    store_->set(fmt::format("heard/{}", place_.rank), bytes_of("1"));
    if (place_.rank != 0 || place_.has_store) return;
    const auto until = Clock::now() + kHeardWithin;
    for (int rank = 1; rank < place_.size; ++rank) {
      while (!store_->check({fmt::format("heard/{}", rank)}) && Clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
  } catch (const std::exception&) {  // nobody is left to be told
  }
}

/// Known in this process from now on: nobody waits any longer.
void Link::fail(const Failure& failure) {
  std::list<c10::intrusive_ptr<c10::ivalue::Future>> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    failed_at_ = Clock::now();
    waiting = futures_;
  }
  for (const auto& future : waiting) {
    future->setErrorIfNeeded(std::make_exception_ptr(PeerError(failure.text, failure.exit_code)));
  }
}

void Link::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      if (!failure()) {
        beat();
        if (watch_store_->check({kFailure})) {
          fail(failure_of(text_of(watch_store_->get(kFailure))));
          watch_store_->set(fmt::format("heard/{}", place_.rank), bytes_of("1"));
        }
        look_at_beats();
        look_at_own_wait();
      }
    } catch (const std::exception&) {
      if (stop.stop_requested()) return;
      fail({.text = fmt::format("{} is gone: the connection to it broke. It was killed, or the "
                                "network failed; its own log or its launcher says more",
                                place_.has_store ? "the launcher's store" : names_[0])});
    }
    end_when_stuck();
    std::this_thread::sleep_for(kLookEvery);
  }
}

void Link::beat() {
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    waits = !pending_.empty();
  }
  watch_store_->set(
      fmt::format("beat/{}", place_.rank),
      bytes_of(fmt::format("{} {} {} {}", ++beats_, started_.load(), step_.load(), waits ? 1 : 0)));
}

/// Rank 0 looks at all, the others at rank 0.
void Link::look_at_beats() {
  if (beats_ % 2 != 0) return;
  for (int rank = 0; rank < (place_.rank == 0 ? place_.size : 1); ++rank) {
    if (rank == place_.rank) continue;
    Beat& other = others_[static_cast<size_t>(rank)];
    const std::string key = fmt::format("beat/{}", rank);
    const std::string text = watch_store_->check({key}) ? text_of(watch_store_->get(key)) : "";
    double silent = 0;
    {
      const std::lock_guard lock(mutex_);
      if (text != other.text) other = {text, Clock::now()};
      silent = Seconds(Clock::now() - other.since).count();
    }
    if (silent < std::min(kSilence, limit_.load())) continue;
    const Failure gone{
        .text = fmt::format("{} was not heard of for {:.0f} seconds: it is gone, or its machine or "
                            "the network is",
                            names_[static_cast<size_t>(rank)], silent)};
    watch_store_->compareSet(kFailure, {}, bytes_of(to_text(gone)));
  }
}

/// Those that began the fewest operations are waited for.
std::string Link::who_is_late() {
  std::vector<std::string> late;
  int64_t fewest = started_;
  for (int rank = 0; rank < place_.size; ++rank) {
    if (rank == place_.rank) continue;
    const std::string key = fmt::format("beat/{}", rank);
    if (!watch_store_->check({key})) continue;
    const Life life = life_of(text_of(watch_store_->get(key)));
    if (life.started > fewest || (life.started == fewest && life.waits)) continue;
    if (life.started < fewest) late.clear();
    fewest = life.started;
    late.push_back(fmt::format("{}, in step {}", names_[static_cast<size_t>(rank)], life.step + 1));
  }
  return late.empty() ? "nobody that could be named" : list_text(late);
}

void Link::look_at_own_wait() {
  Clock::time_point since;
  {
    const std::lock_guard lock(mutex_);
    if (pending_.empty()) return;
    since = pending_.front();
  }
  const double waited = Seconds(Clock::now() - since).count();
  if (waited < limit_) return;
  const Failure late{
      .text = fmt::format(
          "{} waited {:.0f} seconds for: {}. It hangs, or does something in this step that the "
          "others do not; a step that takes longer needs a larger distributed/timeout",
          names_[static_cast<size_t>(place_.rank)], waited, who_is_late())};
  watch_store_->compareSet(kFailure, {}, bytes_of(to_text(late)));
}

/// The main thread may wait in an operation that nothing can end.
void Link::end_when_stuck() {
  std::optional<Failure> known;
  {
    const std::lock_guard lock(mutex_);
    const bool is_busy = place_.rank == 0 && pending_.empty();
    if (!failure_ || is_ending_ ||
        Clock::now() - failed_at_ < (is_busy ? kBusyAtMost : kStuckAfter)) {
      return;
    }
    known = failure_;
  }
  std::fputs(("stepop: " + known->text + "\n").c_str(), stderr);
  std::fflush(nullptr);
  ::_exit(known->exit_code);
}

void Link::finish() {
  constexpr std::chrono::seconds kAllWithin{60};
  const bool is_root = place_.rank == 0;
  try {
    store_->add("finished", 1);
    if (is_root) {
      const auto until = Clock::now() + kAllWithin;
      while (store_->add("finished", 0) < place_.size && Clock::now() < until && !failure()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      set("over", "1");
    } else {
      wait_for("over");
    }
  } catch (const std::exception&) {  // the work is done
  }
  watch_.request_stop();
  watch_.join();
  group_.reset();
  if (is_root && !place_.has_store) {
    // The others still read from the store that this process keeps.
    try {
      const auto until = Clock::now() + std::chrono::seconds(2);
      while (store_->add("left", 0) < place_.size - 1 && Clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    } catch (const std::exception&) {
    }
  } else if (!is_root) {
    try {
      store_->add("left", 1);
    } catch (const std::exception&) {
    }
  }
}

}  // namespace stepop
