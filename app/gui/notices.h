// What the user is told until it is dismissed.
#pragma once

#include "core/base/error.h"
#include "core/graph/meta_graph.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::gui {

struct Notice {
  Severity severity = Severity::info;
  std::string text;
  std::uint64_t document = 0;  // the id of the one it is about: it goes when that goes; 0: none
  std::optional<Remedy> remedy = {};
  std::string path = {};  // that could not be opened
};

class Notices {
 public:
  const std::vector<Notice>& all() const { return all_; }
  // The oldest one goes where there are too many. What the newest one says already is not said again.
  void add(Severity severity, std::string text, std::uint64_t document = 0);
  // With the remedy of the error, and what it was that could not be opened.
  void add(const Error& error, std::string text, std::uint64_t document, std::string path = {});
  // "Could not WHAT: ...", or that it was cancelled. Returns the text.
  std::string fail(std::string_view what, const Error& error, std::uint64_t document = 0,
                   std::string path = {});
  void dismiss(std::size_t at);
  void take_back(std::string_view text);
  void forget(std::uint64_t document);

 private:
  std::vector<Notice> all_;
};

}  // namespace loadline::gui
