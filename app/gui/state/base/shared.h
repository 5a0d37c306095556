// Messages to the user, shown until they are dismissed.
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
  std::uint64_t document = 0;  // id of its document, with which the notice disappears; 0: none
  std::optional<Remedy> remedy = {};
  std::string path = {};  // the path that could not be opened, if any
};

class Notices {
 public:
  const std::vector<Notice>& all() const { return all_; }
  // Adds a notice, unless the newest notice has the same text. Drops the oldest if there are too many.
  void add(Severity severity, std::string text, std::uint64_t document = 0);
  // Adds a notice with the remedy of the error, and with the path that could not be opened.
  void add(const Error& error, std::string text, std::uint64_t document, std::string path = {});
  // Adds "Could not WHAT: ...", or says that WHAT was cancelled. Returns the text.
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

}  // namespace loadline::gui
