// Opens and saves load requests, and applies remedies.
#include "app/gui/state/requests.h"

#include "app/gui/state/base/remedies.h"
#include "app/gui/state/model/model_path.h"
#include "app/gui/state/workspace.h"
#include "app/report/write_file.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/source_file.h"
#include "core/load/request/request_file.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include <fmt/format.h>

namespace loadline::gui {

bool is_request_file(const std::string& path) {
  constexpr std::uint64_t kHead = 4096;  // the version comes first
  std::error_code failed;
  if (!path.ends_with(".json") || !std::filesystem::is_regular_file(path, failed)) return false;
  try {
    const SourceFile file = SourceFile::open(path);
    std::string head(std::min(file.size(), kHead), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(head)));
    return head.find("\"schema_version\"") != std::string::npos;
  } catch (const Error&) {
    return false;  // opening the file will report the error
  }
}

void Workspace::open_request(const std::string& path, const std::string& model) {
  SavedRequest saved = read_request(path);
  const std::string wanted = model.empty() ? saved.model.value_or("") : model;
  if (wanted.empty() || (document().model && is_same_path(document().model->path, wanted)))
    return document().ask(asked_by(std::move(saved.request)));
  ask_open(
      {.name = "Opening " + safe_display(wanted, 60), .path = wanted, .request = std::move(saved.request)});
}

void Workspace::save_request(const std::string& path) {
  if (!path.ends_with(".json"))
    throw Error(ErrorCode::usage, "'{}' does not end in .json: other files are not written over",
                safe_display(path, 120));
  std::optional<std::string> model;
  if (document().model && !document().model->path.empty()) {
    std::error_code failed;
    const std::filesystem::path absolute = std::filesystem::absolute(document().model->path, failed);
    // org/name of a cache is no path
    model = !failed && std::filesystem::exists(absolute, failed) ? absolute.string() : document().model->path;
  }
  report::write_file(path, request_text_beside(saved_request(document().asked()), model, path));
  shared.notices.add(Severity::info, fmt::format("The request is in {}", safe_display(path, 120)));
}

void Workspace::mend(const std::vector<Remedy>& remedies, const std::string& path) {
  switch (remedy_kind(remedies)) {
    case RemedyKind::open:
      return open(path, remedies);
    case RemedyKind::load:
      for (const Remedy& remedy : remedies) document().set_option(remedy.option, remedy.value);
      return;
    case RemedyKind::convert:
      document().wants_convert = remedies;
      settings.panel = "convert";
      return;
  }
}

}  // namespace loadline::gui
