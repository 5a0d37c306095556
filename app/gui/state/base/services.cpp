// The list of notices, and the buttons of remedies.
#include "app/gui/state/base/services.h"

#include "core/base/error.h"
#include "core/load/request/load_options.h"
#include "exporters/convert.h"
#include "importers/resolve.h"

#include <cassert>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {

// --- Notices are a short list, oldest first.

void Notices::add(graph::Severity severity, std::string text, std::uint64_t document) {
  constexpr std::size_t kMost = 5;
  if (!all_.empty() && all_.back().text == text) return;
  if (all_.size() == kMost) all_.erase(all_.begin());
  all_.push_back({severity, std::move(text), document});
}

void Notices::add(const Error& error, std::string text, std::uint64_t document, std::string path) {
  add(error.code() == ErrorCode::canceled ? graph::Severity::info : graph::Severity::error, std::move(text),
      document);
  all_.back().remedy = error.remedy();
  all_.back().path = std::move(path);
}

std::string Notices::fail(std::string_view what, const Error& error, std::uint64_t document,
                          std::string path) {
  const bool canceled = error.code() == ErrorCode::canceled;
  const std::string text =
      canceled ? fmt::format("Canceled: {}", what) : fmt::format("Could not {}: {}", what, error.what());
  add(error, text, document, std::move(path));
  return text;
}

std::optional<Notices::Front> Notices::front(std::uint64_t document) const {
  std::optional<Front> found;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (all_[i].document == 0 || all_[i].document == document) found = {i, found ? found->older + 1 : 0};
  return found;
}

void Notices::dismiss(std::size_t at) {
  if (at < all_.size()) all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(at));
}

void Notices::take_back(std::string_view text) {
  std::erase_if(all_, [&](const Notice& notice) { return notice.text == text; });
}

void Notices::forget(std::uint64_t document) {
  std::erase_if(all_, [&](const Notice& notice) { return notice.document == document; });
}

// --- Looks up the options of remedies in the option tables.

RemedyKind remedy_kind(std::span<const Remedy> remedies) {
  assert(!remedies.empty());
  const std::string& id = remedies.front().option;
  if (find_option(importers::open_options(), id) != nullptr) return RemedyKind::open;
  if (load::find_load_option(id) != nullptr) return RemedyKind::load;
  if (find_option(exporters::convert_options(), id) != nullptr) return RemedyKind::convert;
  throw Error(ErrorCode::usage, "there is no option '{}'", id);
}

std::string remedy_title(std::span<const Remedy> remedies) {
  const Remedy& first = remedies.front();
  const RemedyKind kind = remedy_kind(remedies);
  if (kind == RemedyKind::open)
    return std::string(find_option(importers::open_options(), first.option)->title);
  if (kind == RemedyKind::load)
    return fmt::format("Set {} to {}", load::find_load_option(first.option)->title, first.value);
  return "Use these options";
}

}  // namespace loadline::gui
