// A metadata array as the window shows it: pages of elements and a search, read from the file by jobs.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/base/latest.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace loadline::gui {

// Used from the thread that owns the jobs.
class ArrayView {
 public:
  // `entry` is the position of an array in the graph's metadata.
  ArrayView(Jobs& jobs, MetaGraphPtr graph, std::size_t entry);

  const MetaArray& array() const { return *array_; }

  // The element as text, not escaped, cut if it is long; null until it is read.
  const std::string* element(std::uint64_t i) const;
  // Starts reading the elements [first, last), unless they are read already.
  void want(std::uint64_t first, std::uint64_t last);
  bool reading() const { return read_.busy(); }
  // Why reading failed; nothing more is read before retry().
  std::string error() const { return read_.error_text(); }
  void retry() { read_.withdraw(); }

  // Searches all elements, in order, for those that contain `text`, ignoring case.
  void search(std::string text);
  void stop_search() { found_.cancel(); }
  const std::string& searched() const { return searched_; }
  bool searching() const { return found_.busy(); }
  JobId search_job() const { return found_.job(); }
  // Indices of matching elements, in order; only the first kMostFound. Empty during the search.
  const std::vector<std::uint64_t>& found() const { return found_.or_empty(); }
  std::string search_error() const;

  static constexpr std::size_t kMostFound = 10'000;
  static constexpr std::uint64_t kPage = 256;

 private:
  using Page = std::vector<std::string>;
  using Pages = std::map<std::uint64_t, Page>;  // by first element / kPage
  void take(const Pages& pages, std::uint64_t first);

  Jobs& jobs_;
  MetaGraphPtr graph_;
  const MetaArray* array_ = nullptr;
  Pages pages_;
  Latest<Pages> read_;  // the pages that were wanted last
  std::uint64_t reading_first_ = 0;
  std::uint64_t reading_last_ = 0;  // pages
  std::string searched_;
  Latest<std::vector<std::uint64_t>> found_;
};

}  // namespace loadline::gui
