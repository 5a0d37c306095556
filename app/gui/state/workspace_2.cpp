// Opens models; workspace_documents.cpp keeps the open ones, workspace_transfer.cpp moves their bytes.
#include "app/gui/state/model/demo_model.h"
#include "app/gui/state/model/model_path.h"
#include "app/gui/state/requests.h"
#include "app/gui/state/window_state.h"
#include "app/gui/state/workspace.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/temporary_folder.h"
#include "importers/open_options.h"

#include <filesystem>
#include <utility>

namespace loadline::gui {

namespace {

// A path that is none (org/name) stays what it is.
// The document with the model at this path; 0 if there is none.
std::uint64_t id_with_path(const std::vector<std::unique_ptr<Document>>& documents, const std::string& path) {
  if (path.empty()) return 0;
  for (const std::unique_ptr<Document>& document : documents)
    if (document->model && is_same_path(document->model->path, path)) return document->id;
  return 0;
}

}  // namespace

Workspace::Workspace(std::string hub_cache, std::shared_ptr<const ForwardAssets> assets)
    : hub_cache_(std::move(hub_cache)) {
  shared.assets = assets ? std::move(assets) : built_in_assets();
  shared.targets =
      std::make_shared<const std::vector<Target>>(built_in_targets().begin(), built_in_targets().end());
  documents_.push_back(std::make_unique<Document>(shared, nullptr, Document::Kept{}));
}

void Workspace::ask_open(ToOpen wanted) {
  waiting_.push_back(std::move(wanted));
  if (!opening.busy()) open_next();
}

void Workspace::open_next() {
  if (waiting_.empty()) return;
  const ToOpen& next = waiting_.front();
  ResolveOptions options;
  options.hub_cache = hub_cache_;
  options.assets = [assets = shared.assets] { return assets; };
  for (const Remedy& remedy : next.with)
    if (const auto* const option = find_option(open_options(), remedy.option))
      set_option(*option, options, remedy.value);
  opening.ask(
      shared.jobs, next.name,
      [path = next.path, locate = next.locate, options](Progress& progress) {
        const std::string found = locate ? locate(progress) : path;
        progress.check_cancelled();
        auto graph = std::make_shared<MetaGraph>(open_model(found, options));
        progress.check_cancelled();
        return make_model(std::move(graph), found);
      },
      [this] {
        const ToOpen opened = std::move(waiting_.front());
        waiting_.pop_front();
        take_opened(opened);
        opening.drop();
        open_next();
      });
}

void Workspace::take_opened(const ToOpen& opened) {
  if (opening.error() != nullptr) {
    shared.notices.fail("open", *opening.error(), document().id, opened.path);
    return;
  }
  const bool again = opened.in_place_of != 0;
  if (again && find_document(opened.in_place_of) == nullptr) return;  // closed meanwhile
  const std::size_t before = shown_;
  adopt(opening.value(), again ? opened.in_place_of : id_with_path(documents_, opening.value()->path));
  if (!again && !opened.path.empty()) remember(recent, absolute_path(opened.path));
  if (opened.request) attempt([&] { document().ask(asked_by(*opened.request)); });
  if (again) shown_ = before;  // it was read again behind the one that is looked at
}

void Workspace::open(const std::string& path, const std::vector<Remedy>& with) {
  if (path.ends_with(".csv")) {
    settings.panel = "arena";
    return document().arena->open(path);
  }
  if (is_request_file(path)) return attempt([&] { open_request(path); });
  ask_open({.name = "Opening " + safe_display(path, 60), .path = path, .with = with});
}

void Workspace::open_demo() {
  if (!demo_) demo_ = std::make_shared<TemporaryFolder>();
  ask_open({.name = "Writing the demo model", .path = "", .locate = [folder = demo_](Progress& progress) {
              return write_demo_model(folder->path(), progress);
            }});
}

void Workspace::show(MetaGraphPtr graph, std::string path) {
  adopt(make_model(std::move(graph), std::move(path)));
}

void Workspace::attempt(const std::function<void()>& verb) {
  try {
    verb();
  } catch (const Error& error) {
    shared.notices.add(error, error.what(), document().id);
  }
}

}  // namespace loadline::gui
