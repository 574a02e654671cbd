#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Event.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "runtime/core/base/interrupt.h"
#include "runtime/train/distributed/failure.h"
#include "runtime/train/distributed/peer_error.h"
#include "runtime/train/distributed/place.h"

namespace stepop {

/// A process's connections to the others: c10d's group for tensors, its store for texts, and the
/// thread that watches the connections. Only files of this folder include this header: c10d's
/// headers are heavy.
class Link {
 public:
  Link(const Place& place, const InterruptCheck& interrupt);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  const c10::intrusive_ptr<c10d::ProcessGroup>& group() const { return group_; }
  const std::vector<std::string>& names() const { return names_; }

  /// Waits for an operation of the group. Throws PeerError.
  void wait(const c10::intrusive_ptr<c10d::Work>& work);
  /// The same as a future, which ends with PeerError when another process failed.
  c10::intrusive_ptr<c10::ivalue::Future> guarded(const c10::intrusive_ptr<c10d::Work>& work);

  /// Connects the devices of the processes, see World::use_backend.
  void connect_devices(const std::string& name, c10::Device device);
  /// Whether a tensor travels from its device without the host.
  bool stays_on(const at::Tensor& tensor) const;
  bool stays_on(c10::Device device) const { return device.type() == device_type_; }
  /// Called for each operation between devices, which the host does not wait for: the watch does.
  /// Throws PeerError.
  void follow(const c10::intrusive_ptr<c10d::Work>& work);
  /// The same; the current stream waits for it.
  void wait_on_device(const c10::intrusive_ptr<c10d::Work>& work);

  /// Waits for the value of a key of the store.
  std::string wait_for(const std::string& key);
  void set(const std::string& key, const std::string& value);
  int64_t next_number() { return number_++; }

  void set_time_limit(double seconds);
  void set_step(int64_t step) { step_.store(step, std::memory_order_relaxed); }
  void report(const Failure& failure) noexcept;
  /// Reports that the processes do different things; the process ends right after that.
  void report_mismatch() noexcept;
  /// Called before a process ends by a failure: rank 0, which keeps the store, waits for a moment
  /// until the others have read the failure.
  void leave() noexcept;
  void finish();
  /// Whether the store is out of reach.
  bool is_cut_off() const { return is_cut_off_; }
  /// A PeerError for the known failure, or for the failure that is found now.
  PeerError peer_error(const std::string& what);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kLookEvery{250};
  /// A process that cannot say why it ends, for example because it was killed, leaves broken
  /// connections. The others wait this long for its reason before they report the loss.
  static constexpr std::chrono::seconds kReasonWithin{3};
  /// The start times of the running operations.
  using Pending = std::list<Clock::time_point>;
  /// The last heartbeat of another process.
  struct Beat {
    std::string text;
    Clock::time_point since;
  };

  /// An operation between devices that may still run.
  struct OnDevice {
    Clock::time_point begin;
    std::unique_ptr<c10::Event> end;
  };

  Pending::iterator begin_wait();
  void end_wait(Pending::iterator waiting);

  // link_device.cpp
  /// The last operation of each process: in rank 0 it fails as soon as a process has ended without
  /// it.
  c10::intrusive_ptr<c10d::Work> final_gather();
  std::optional<Clock::time_point> stuck_since();
  void check_final_gather();

  // link_watch.cpp
  double silence_limit() const;
  void watch(const std::stop_token& stop);
  void beat();
  void look_at_beats();
  void look_at_own_wait();
  void end_when_stuck();
  std::string who_is_late();
  std::string mismatch_text() const;

  void fail(const Failure& failure);
  PeerError error_of(const Failure& failure) const;
  std::optional<Failure> failure();
  static std::string gone_text(const std::vector<std::string>& names, const std::string& what);
  std::vector<std::string> beats_of_all();
  std::vector<std::string> silent_since(const std::vector<std::string>& before);

  Place place_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::Store>
      watch_store_;  ///< For the watch: a store serves one thread at a time.
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::optional<c10::DeviceType> device_type_;   ///< The devices that `group_` connects.
  c10::intrusive_ptr<c10d::Backend> hosts_;      ///< For `final_gather`; null without devices.
  c10::intrusive_ptr<c10d::Work> final_gather_;  ///< In rank 0.
  std::optional<Clock::time_point> broken_at_;   ///< When `final_gather_` failed; for the watch.
  std::vector<std::string> names_;               ///< By rank.
  int64_t number_ = 0;                           ///< Counts the texts of rank 0 in the store.

  std::atomic<double> limit_ = 300;
  std::atomic<int64_t> step_ = 0;
  std::atomic<int64_t> started_ = 0;  ///< Operations that this process began.
  std::atomic<bool> is_ending_ = false;
  std::atomic<bool> is_cut_off_ = false;

  std::mutex mutex_;
  std::optional<Failure> failure_;
  Clock::time_point failed_at_;
  Pending pending_;
  std::deque<OnDevice> on_device_;
  Clock::time_point device_moved_;  ///< When the last of them was seen to be over.
  std::list<c10::intrusive_ptr<c10::ivalue::Future>> futures_;  ///< The futures of `guarded`.
  std::vector<Beat> others_;                                    ///< By rank.
  int64_t beats_ = 0;                                           ///< Only used by the watch.
  std::jthread watch_;
};

}  // namespace stepop
