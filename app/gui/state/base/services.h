// What all documents share: notices with their remedies, jobs, requests to the window, devices, assets,
// targets.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/base/window_requests.h"
#include "core/base/error.h"
#include "core/forward/model/assets_loader.h"
#include "core/gpu/device_info.h"
#include "core/graph/meta_graph.h"
#include "core/io/system_memory.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/rates.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

// --- Messages to the user, shown until they are dismissed.

struct Notice {
  graph::Severity severity = graph::Severity::info;
  std::string text;
  std::uint64_t document = 0;  // id of its document, with which the notice disappears; 0: none
  std::optional<Remedy> remedy = {};
  std::string path = {};  // the path that could not be opened, if any
};

class Notices {
 public:
  const std::vector<Notice>& all() const { return all_; }
  // Adds a notice, unless the newest notice has the same text. Drops the oldest if there are too many.
  void add(graph::Severity severity, std::string text, std::uint64_t document = 0);
  // Adds a notice with the remedy of the error, and with the path that could not be opened.
  void add(const Error& error, std::string text, std::uint64_t document, std::string path = {});
  // Adds "Could not WHAT: ...", or says that WHAT was canceled. Returns the text.
  std::string fail(std::string_view what, const Error& error, std::uint64_t document = 0,
                   std::string path = {});
  // The newest that is about the model shown or about none, and how many older ones are; `at` is its
  // position.
  struct Front {
    std::size_t at = 0;
    std::size_t older = 0;
  };
  std::optional<Front> front(std::uint64_t document) const;
  void dismiss(std::size_t at);
  void take_back(std::string_view text);
  void forget(std::uint64_t document);

 private:
  std::vector<Notice> all_;
};

// --- The kind of a remedy, and the title of its button.

enum class RemedyKind : std::uint8_t { open, load, convert };

// The kind of remedies that one button applies together. Throws Error{usage} if the first option is unknown.
RemedyKind remedy_kind(std::span<const Remedy> remedies);
// The button's title: "Follow links", "Set Order to file", "Use these options".
std::string remedy_title(std::span<const Remedy> remedies);

// --- The services that all documents of the window share: background jobs, notices, devices, assets and
// targets.

struct Services {
  // Enough that opening a model never waits for an upload, and planning never waits for an opening.
  static constexpr unsigned kWorkers = 3;

  Jobs jobs{kWorkers};  // first member: it is destroyed after everything that posts jobs
  Notices notices;
  WindowRequests requests;
  std::string done;  // what was finished last, in words; not a message that must be read
  std::shared_ptr<const forward::ForwardAssets> assets;
  std::shared_ptr<const std::vector<load::Target>> targets;  // never null
  // The rates for time estimates, from the next plan on; nothing: assumed rates.
  std::optional<load::MeasuredRates> rates;
  std::optional<io::SystemMemory> memory;        // when the targets were last measured
  Latest<std::vector<gpu::DeviceInfo>> devices;  // of this machine; null before the first look-up
  std::string device;                            // the device for uploads; empty: the best one
  std::uint64_t documents = 0;                   // documents made so far: the id of the newest
};

}  // namespace loadline::gui
