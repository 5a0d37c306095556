// Keeps the pages around the visible elements; other pages are read again when they become visible.
#include "app/gui/state/model/file_data.h"

#include "app/gui/state/model/meta_text.h"
#include "core/io/graph_reader.h"

#include <algorithm>

namespace loadline::gui {
namespace {

constexpr std::size_t kMostPages = 64;
constexpr std::size_t kMostText = 400;  // bytes of an element that are kept
constexpr std::uint64_t kPulse = 1024;  // elements between looks at the request to stop

std::string kept_text(const MetaValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    std::string kept(beginning(*text, kMostText));
    if (kept.size() < text->size()) kept += "\xE2\x80\xA6";
    return kept;
  }
  return meta_text(value);
}

}  // namespace

ArrayView::ArrayView(Jobs& jobs, MetaGraphPtr graph, std::size_t entry)
    : jobs_(jobs), graph_(std::move(graph)), array_(&std::get<MetaArray>(graph_->metadata[entry].value)) {}

const std::string* ArrayView::element(std::uint64_t i) const {
  const auto page = pages_.find(i / kPage);
  if (page == pages_.end() || i % kPage >= page->second.size()) return nullptr;
  return &page->second[i % kPage];
}

void ArrayView::want(std::uint64_t first, std::uint64_t last) {
  last = std::min(last, array_->count);
  if (first >= last || read_.error() != nullptr) return;
  std::uint64_t from = first / kPage;
  const std::uint64_t to = (last - 1) / kPage + 1;
  while (from < to && pages_.contains(from)) ++from;
  if (from == to || (reading() && reading_first_ <= from && to <= reading_last_)) return;
  reading_first_ = from;
  reading_last_ = to;
  const auto work = [graph = graph_, array = *array_, from, to](Progress& progress) {
    MetaArrayReader reader(*graph, array);
    while (reader.at() < from * kPage && reader.remaining() > 0) {
      progress.check_cancelled();
      reader.skip(std::min(from * kPage - reader.at(), kPulse * kPage));
    }
    Pages pages;
    while (reader.at() < to * kPage && reader.remaining() > 0) {
      if (reader.at() % kPulse == 0) progress.check_cancelled();
      Page& page = pages[reader.at() / kPage];
      page.push_back(kept_text(reader.next()));
    }
    return pages;
  };
  read_.ask(jobs_, "Reading metadata", work, [this, from] {
    if (read_.value()) take(*read_.value(), from);
    read_.drop();
  });
}

void ArrayView::take(const Pages& pages, std::uint64_t first) {
  pages_.insert(pages.begin(), pages.end());
  while (pages_.size() > kMostPages) {  // drop the farthest page
    const bool low =
        first - std::min(first, pages_.begin()->first) > std::max(first, pages_.rbegin()->first) - first;
    pages_.erase(low ? pages_.begin() : std::prev(pages_.end()));
  }
}

void ArrayView::search(std::string text) {
  found_.reset();
  searched_ = std::move(text);
  if (searched_.empty()) return;
  const auto work = [graph = graph_, array = *array_, text = searched_](Progress& progress) {
    std::vector<std::uint64_t> found;
    const Needle needle(text);
    MetaArrayReader reader(*graph, array);
    progress.add_total(array.bytes);
    std::uint64_t reported = 0;
    while (reader.remaining() > 0 && found.size() < kMostFound) {
      if (reader.at() % kPulse == 0) {
        progress.check_cancelled();
        progress.add(reader.bytes_passed() - reported);
        reported = reader.bytes_passed();
      }
      const std::uint64_t at = reader.at();
      const MetaValue value = reader.next();
      const auto* string = std::get_if<std::string>(&value);
      if (string != nullptr ? needle.in(*string) : needle.in(meta_text(value))) found.push_back(at);
    }
    return found;
  };
  found_.ask(jobs_, "Searching metadata", work);
}

std::string ArrayView::search_error() const {
  return found_.was_cancelled() ? "The search was stopped." : found_.error_text();
}

}  // namespace loadline::gui
