// One metadata array as it is looked at: pages of elements and a search through all of them, read by jobs.
#pragma once

#include "app/gui/jobs.h"
#include "core/graph/meta_graph.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace loadline::gui {

// Of the thread that owns the jobs. Held by shared_ptr: what jobs deliver to one that is gone is dropped.
class ArrayView : public std::enable_shared_from_this<ArrayView> {
 public:
  // `entry` is the position of an array in the graph's metadata.
  ArrayView(Jobs& jobs, MetaGraphPtr graph, std::size_t entry);

  const MetaArray& array() const { return *array_; }

  // The element as text, not escaped, its beginning if it is long; nothing while it is not read.
  const std::string* element(std::uint64_t i) const;
  // Has the elements [first, last) read, if they are not.
  void want(std::uint64_t first, std::uint64_t last);
  bool reading() const { return reading_ > 0; }
  // Why reading ended; nothing more is read before retry().
  const std::string& error() const { return error_; }
  void retry() { error_.clear(); }

  // Looks for elements that hold `text`, in any case, from the first to the last.
  void search(std::string text);
  void stop_search();
  const std::string& searched() const { return searched_; }
  bool searching() const { return searching_ > 0; }
  JobId search_job() const { return search_job_; }
  // Indices in order; only the first kMostFound.
  const std::vector<std::uint64_t>& found() const { return found_; }
  const std::string& search_error() const { return search_error_; }

  static constexpr std::size_t kMostFound = 10'000;
  static constexpr std::uint64_t kPage = 256;

 private:
  using Page = std::vector<std::string>;
  using Pages = std::map<std::uint64_t, Page>;  // by first element / kPage
  void take(Pages pages, std::uint64_t first);

  Jobs& jobs_;
  MetaGraphPtr graph_;
  const MetaArray* array_ = nullptr;
  Pages pages_;
  std::uint64_t reading_ = 0;  // number of the read under way, else 0
  std::uint64_t reading_first_ = 0;
  std::uint64_t reading_last_ = 0;  // pages
  std::string error_;
  std::string searched_;
  std::uint64_t searching_ = 0;
  JobId search_job_{};
  std::vector<std::uint64_t> found_;
  std::string search_error_;
  std::uint64_t count_ = 0;  // of jobs posted
};

}  // namespace loadline::gui
