#include "runtime/train/distributed/world.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <thread>

#include "runtime/train/distributed/failure.h"
#include "tests/message_of.h"
#include "tests/runtime/train/distributed/together.h"

namespace stepop {
namespace world_test {

using Texts = std::vector<std::string>;
using std::chrono::steady_clock;

std::string text_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous();
  const auto* begin = flat.const_data_ptr<double>();
  return fmt::format("{}", fmt::join(begin, begin + flat.numel(), " "));
}

/// A message without the numbers of processes and the name of this machine.
std::string plain(std::string text) {
  for (size_t at = 0; (at = text.find(" on ", at)) != std::string::npos;) {
    const size_t process = text.find(", process ", at);
    if (process == std::string::npos) break;
    const size_t end = text.find_first_not_of("0123456789", process + 10);
    text.erase(at, (end == std::string::npos ? text.size() : end) - at);
  }
  return text;
}

Texts plain(Texts texts) {
  for (auto& text : texts) text = plain(text);
  return texts;
}

TEST_CASE("a world of one process gives back what it is given") {
  World world;
  CHECK(world.is_root());
  CHECK(world.is_alone());
  const at::Tensor tensor = at::arange(3);
  world.sum(tensor);
  world.max(tensor);
  world.broadcast(tensor);
  CHECK(text_of(tensor) == "0 1 2");
  CHECK(world.max(std::vector<double>{3, -1}) == std::vector<double>{3, -1});
  CHECK(world.broadcast_text("a") == "a");
  CHECK(world.gather_texts("a") == Texts{"a"});
  CHECK(world.gather_bytes_at_root("a") == Texts{"a"});
  CHECK(world.from_root([] { return std::string("a"); }) == "a");
  world.check_same("it", "a");
  world.finish();
  CHECK(World::join({}, {})->is_alone());
}

TEST_CASE("tensors are summed, compared and broadcast over processes") {
  const Texts texts = together(3, [](World& world) {
    const at::Tensor sum = at::arange(4, at::kDouble) * (world.rank() + 1);
    const at::Tensor max = at::full({2}, world.rank() == 1 ? 7 : world.rank(), at::kLong);
    const at::Tensor root = at::full({2, 2}, world.rank() + 0.5, at::kFloat);
    const at::Tensor none = at::empty({0});
    world.sum(sum);
    world.max(max);
    world.broadcast(root);
    world.broadcast(none);
    return text_of(sum) + "|" + text_of(max) + "|" + text_of(root);
  });
  CHECK(texts == Texts(3, "0 6 12 18|7 7|0.5 0.5 0.5 0.5"));
}

TEST_CASE("the largest of numbers is everybody's") {
  const Texts texts = together(2, [](World& world) {
    const double sign = world.is_root() ? 1 : -1;
    return fmt::format("{}", fmt::join(world.max({sign, -sign, -1e300, 5}), " "));
  });
  CHECK(texts == Texts(2, "1 1 -1e+300 5"));
}

TEST_CASE("texts of any bytes and lengths are gathered by rank, and broadcast") {
  const std::string odd("a\0b\nä\xff", 7);
  const Texts texts = together(3, [&](World& world) {
    const std::string own =
        world.rank() == 0 ? odd : std::string(size_t(world.rank() - 1) * 9, 'x');
    const Texts all = world.gather_texts(own);
    const Texts at_root = world.gather_bytes_at_root(own);
    const std::string said = world.broadcast_text(world.is_root() ? odd : "not this");
    const std::string empty = world.broadcast_text(world.is_root() ? "" : "not this");
    const Texts nothing = world.gather_texts("");
    return fmt::format("{} {} {} {} {}", all == Texts{odd, "", std::string(9, 'x')}, at_root == all,
                       at_root.size(), said == odd, empty.empty() && nothing == Texts(3));
  });
  CHECK(texts ==
        Texts{"true true 3 true true", "true false 0 true true", "true false 0 true true"});
}

TEST_CASE("what rank 0 finds out is known to all, however often") {
  const Texts texts = together(3, [](World& world) {
    std::string all;
    for (int i = 0; i < 20; ++i) {
      all += world.from_root([&] {
        if (i == 10) std::this_thread::sleep_for(std::chrono::milliseconds(300));
        return fmt::format("{}:{} ", world.rank(), i);
      });
    }
    bool is_called = false;
    world.wait_for_root([&] { is_called = true; });
    return fmt::format("{} {}", all.size(), is_called);
  });
  CHECK(texts == Texts{"90 true", "90 false", "90 false"});
}

TEST_CASE("while rank 0 works no time limit counts") {
  const Texts texts = together(2, [](World& world) {
    world.set_time_limit(1);
    const std::string text = world.from_root([] {
      std::this_thread::sleep_for(std::chrono::seconds(3));
      return std::string("late");
    });
    world.set_time_limit(kLongest);
    return text;
  });
  CHECK(texts == Texts(2, "late"));
}

TEST_CASE("an interruption of rank 0's work interrupts all, with its exit code") {
  const Texts texts = together(3, [](World& world) {
    try {
      world.from_root([]() -> std::string { throw Interrupted("SIGTERM arrived, truly", 143); });
    } catch (const Interrupted& error) {
      // Nothing is broken: all go on.
      return fmt::format("{} {} {}", error.exit_code(), error.what(),
                         world.gather_texts("x").size());
    }
    return std::string("nothing");
  });
  CHECK(texts == Texts(3, "143 SIGTERM arrived, truly 3"));
}

TEST_CASE("a value that is not the same in all processes is shown with both") {
  const Texts texts = together(3, [](World& world) {
    world.check_same("the seed", "1");
    world.check_same("the order", world.rank() == 2 ? "shuffled" : "sorted");
    return std::string("passed");
  });
  CHECK(plain(texts) == Texts(3,
                              "Error: the order is not the same in all processes\n"
                              "  rank 0: sorted\n  rank 2: shuffled"));
}

TEST_CASE("what one process fails of reaches all, with its rank and exit code") {
  for (const int failing : {0, 1}) {
    CAPTURE(failing);
    const Texts texts = together(3, [&](World& world) {
      const at::Tensor tensor = at::full({1}, 1.0);
      world.sum(tensor);
      if (world.rank() == failing) throw UsageError("the file x is not there");
      try {
        world.sum(tensor);
      } catch (const PeerError& error) {
        return fmt::format("{}: {}", error.exit_code(), plain(error.what()));
      }
      return std::string("nothing");
    });
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(texts[static_cast<size_t>(rank)] ==
            (rank == failing ? "Error: the file x is not there"
                             : fmt::format("2: rank {}: the file x is not there", failing)));
    }
  }
}

TEST_CASE("what one process fails of reaches those who wait for rank 0's work") {
  const Texts texts = together(3, [](World& world) {
    if (world.rank() == 2) throw Error("no space is left");
    return world.from_root([&]() -> std::string {
      for (int i = 0; i < 100; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return "done";
    });
  });
  // Rank 0 was busy, and ended its work.
  CHECK(plain(texts[1]) == "PeerError: rank 2: no space is left");
  CHECK(texts[2] == "Error: no space is left");
}

TEST_CASE("a process that is killed is named by all others") {
  for (const int killed : {0, 2}) {
    CAPTURE(killed);
    const Texts texts = together(3, [&](World& world) {
      const at::Tensor tensor = at::full({1}, 1.0);
      world.sum(tensor);
      if (world.rank() == killed) ::kill(::getpid(), SIGKILL);
      world.sum(tensor);
      return std::string("nothing");
    });
    for (int rank = 0; rank < 3; ++rank) {
      CAPTURE(rank);
      const std::string text = plain(texts[static_cast<size_t>(rank)]);
      CAPTURE(text);
      if (rank == killed) {
        CHECK(text == "signal 9");
      } else {
        CHECK(text.starts_with("PeerError: "));
        CHECK(text.find(fmt::format("rank {}", killed)) != std::string::npos);
        CHECK(text.find("is gone") != std::string::npos);
        CHECK(text.find("killed") != std::string::npos);
      }
    }
  }
}

TEST_CASE("a process that is late beyond the time limit is named, with its step") {
  for (const int late : {0, 1}) {
    CAPTURE(late);
    const Texts texts = together(3, [&](World& world) {
      world.set_step(41);
      const at::Tensor tensor = at::full({1}, 1.0);
      world.sum(tensor);
      world.set_time_limit(2);
      if (world.rank() == late) std::this_thread::sleep_for(std::chrono::seconds(6));
      world.sum(tensor);
      return std::string("nothing");
    });
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == late) continue;
      const std::string text = plain(texts[static_cast<size_t>(rank)]);
      CAPTURE(text);
      CHECK(text.find(fmt::format("seconds for: rank {}, in step 42. It hangs", late)) !=
            std::string::npos);
      CHECK(text.find("a larger distributed/timeout") != std::string::npos);
    }
  }
}

TEST_CASE("an operation that only one process calls ends at the time limit") {
  const Texts texts = together(2, [](World& world) {
    world.set_time_limit(1);
    const at::Tensor tensor = at::full({1}, 1.0);
    if (world.rank() == 1) {
      world.sum(tensor);
    } else {
      world.from_root([] {
        std::this_thread::sleep_for(std::chrono::seconds(3));
        return std::string();
      });
      world.sum(tensor);
    }
    return std::string("nothing");
  });
  CHECK(plain(texts[1]).find(" seconds for: rank 0, in step 1") != std::string::npos);
}

TEST_CASE("no report of a failure is a success, and one that is broken is its own text") {
  CHECK(failure_of(to_text({.rank = 2, .exit_code = 143, .text = "a"})).exit_code == 143);
  for (const std::string code : {"0", "-1", "256"}) {
    const Failure failure =
        failure_of(R"({"rank": 0, "text": "all is done", "exit_code": )" + code + "}");
    CHECK(failure.exit_code == 1);
    CHECK(failure.text == "all is done");
  }
  for (const std::string text :
       {"no JSON", "[1]", R"({"rank": "a", "text": 1, "exit_code": []})"}) {
    const Failure failure = failure_of(text);
    CHECK(failure.rank == -1);
    CHECK(failure.exit_code == 1);
    CHECK(failure.text == text);
  }
}

TEST_CASE("processes with other secrets do not find each other") {
  const std::vector<Place> places = places_of(2);
  const auto begin = steady_clock::now();
  const Texts texts = in_processes(places, [&](const Place& place) {
    if (place.rank == 1) ::setenv("STEPOP_SECRET", "a", 1);
    World::join(place, [&] {
      if (steady_clock::now() - begin > std::chrono::seconds(3)) throw Interrupted("end", 130);
    });
    return std::string("joined");
  });
  for (const auto& text : texts) CHECK(text != "joined");
}

TEST_CASE("a port that is taken is said by rank 0, with what helps") {
  std::vector<Place> places = places_of(1);
  places[0].size = 2;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(places[0].port));
  REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(::listen(socket, 1) == 0);
  const Texts texts = in_processes(places, [](const Place& place) {
    World::join(place, {});
    return std::string("joined");
  });
  ::close(socket);
  CAPTURE(texts[0]);
  CHECK(texts[0].starts_with(
      fmt::format("Error: rank 0 cannot listen on port {} of 127.0.0.1: ", places[0].port)));
  CHECK(texts[0].ends_with("\nanother port: MASTER_PORT, the same for all processes"));
  CHECK(texts[0].find("Exception raised from") == std::string::npos);
}

TEST_CASE("a program that has the port, takes connections and stays silent is said, too") {
  std::vector<Place> places = places_of(2);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(places[0].port));
  REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(::listen(socket, 10) == 0);
  places[0].rank = 2;
  places[0].size = places[1].size = 3;
  const Texts texts = in_processes(places, [&](const Place& place) {
    World::join(place, [&] {
      if (place.rank == 2) throw Interrupted("SIGINT arrived", 130);
    });
    return std::string("joined");
  });
  ::close(socket);
  CHECK(texts[0] == "Interrupted 130: SIGINT arrived");
  CHECK(texts[1] ==
        fmt::format("Error: rank 1 of 3: what listens at 127.0.0.1, port {}, takes connections and "
                    "did not answer for 10 seconds: it is another program, or rank 0 is stopped\n"
                    "another port: MASTER_PORT, the same for all processes",
                    places[0].port));
}

TEST_CASE("one that fails as soon as all have met breaks no other's connections") {
  constexpr int kProcesses = 5;
  for (int i = 0; i < 5; ++i) {
    CAPTURE(i);
    const Texts texts = together(kProcesses, [](World& world) {
      if (world.rank() == kProcesses - 1) throw Error("no space is left");
      world.sum(at::full({1}, 1.0));
      return std::string("nothing");
    });
    for (size_t rank = 0; rank + 1 < kProcesses; ++rank) {
      CHECK(plain(texts[rank]) ==
            fmt::format("PeerError: rank {}: no space is left", kProcesses - 1));
    }
  }
}

TEST_CASE("two processes with one rank are refused, and all end") {
  std::vector<Place> places = places_of(3);
  places[2].rank = 1;
  const Texts texts = in_processes(places, [](const Place& place) {
    World::join(place, {});
    return std::string("joined");
  });
  int said = 0;
  for (const auto& text : texts) {
    CAPTURE(text);
    CHECK(text.starts_with("Error: "));
    said +=
        text.find("two processes have the rank 1 of 3: each needs its own") != std::string::npos;
  }
  CHECK(said == 3);
}

TEST_CASE("processes that were started as one of different numbers are refused, and all end") {
  std::vector<Place> places = places_of(2);
  places[1].size = 3;
  const Texts texts = in_processes(places, [](const Place& place) {
    World::join(place, {});
    return std::string("joined");
  });
  for (const auto& text : plain(texts)) {
    CHECK(text == "Error: rank 1 was started as one of 3 processes, rank 0 as one of 2");
  }
}

TEST_CASE("whoever waits for others can be interrupted") {
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    std::vector<Place> places = places_of(2);
    places.erase(places.begin() + 1 - rank);
    const auto begin = steady_clock::now();
    const Texts texts = in_processes(places, [&](const Place& place) {
      World::join(place, [&] {
        if (steady_clock::now() - begin > std::chrono::milliseconds(300)) {
          throw Interrupted("SIGINT arrived", 130);
        }
      });
      return std::string("joined");
    });
    CHECK(texts[0] == "Interrupted 130: SIGINT arrived");
  }
}

TEST_CASE("two worlds of the same processes, one after the other, do not mix") {
  const std::vector<Place> first = places_of(2);
  const std::vector<Place> second = places_of(2);
  const Texts texts = in_processes(first, [&](const Place& place) {
    std::string text;
    for (const auto& places : {first, second}) {
      Place here = place;
      here.port = places[0].port;
      const auto world = World::join(here, {});
      text += world->from_root([&] { return std::to_string(here.port); }) + " ";
      world->finish();
    }
    return text;
  });
  CHECK(texts == Texts(2, fmt::format("{} {} ", first[0].port, second[0].port)));
}

}  // namespace world_test
}  // namespace stepop
