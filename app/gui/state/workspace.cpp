// Opens models, keeps them, reads them again; devices; saved requests and remedies.
#include "app/gui/state/workspace.h"

#include "app/gui/state/base/services.h"
#include "app/gui/state/load/arena.h"
#include "app/gui/state/model/files.h"
#include "app/report/page_parts.h"
#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/gpu/memory_need.h"
#include "core/io/file_system.h"
#include "core/io/source_file.h"
#include "core/io/system_memory.h"
#include "core/load/request/load_options.h"
#include "importers/resolve.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <span>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {

// --- Opens models.

namespace {

constexpr std::uint64_t kNoDocument = UINT64_MAX;  // no document has this id

// The id of the document with the model at this path; 0 if there is none.
std::uint64_t id_with_path(const std::vector<std::unique_ptr<Document>>& documents, const std::string& path) {
  if (path.empty()) return 0;
  for (const std::unique_ptr<Document>& document : documents)
    if (document->model && is_same_path(document->model->path, path)) return document->id;
  return 0;
}

// Whether the file declares itself a saved request, well-formed or not.
bool is_request_file(const std::string& path) {
  constexpr std::uint64_t kHead = 4096;  // the version comes first
  std::error_code failed;
  if (!path.ends_with(".json") || !std::filesystem::is_regular_file(path, failed)) return false;
  try {
    const io::SourceFile file = io::SourceFile::open(path);
    std::string head(std::min(file.size(), kHead), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(head)));
    return head.find("\"schema_version\"") != std::string::npos;
  } catch (const Error&) {
    return false;  // opening the file will report the error
  }
}

}  // namespace

Workspace::Workspace(importers::StorePlaces stores, std::shared_ptr<const forward::ForwardAssets> assets)
    : places(services.jobs, stores.hub_cache), shelf(services, std::move(stores)) {
  services.assets = assets ? std::move(assets) : forward::built_in_assets();
  services.targets = std::make_shared<const std::vector<load::Target>>(load::built_in_targets().begin(),
                                                                       load::built_in_targets().end());
  documents_.push_back(std::make_unique<Document>(services, nullptr, Document::Kept{}));
  measure_machine();
}

void Workspace::ask_open(ToOpen wanted) {
  waiting_.push_back(std::move(wanted));
  if (!opening.busy()) open_next();
}

void Workspace::open_next() {
  if (waiting_.empty()) return;
  const ToOpen& next = waiting_.front();
  importers::ResolveOptions options;
  options.hub_cache = places.hub_cache();
  options.assets = [assets = services.assets] { return assets; };
  options.picture_sides = next.sides;
  for (const Remedy& remedy : next.with)
    if (const auto* const option = find_option(importers::open_options(), remedy.option))
      set_option(*option, options, remedy.value);
  opening.ask(
      services.jobs, next.name,
      [path = next.path, locate = next.locate, options](Progress& progress) {
        const std::string found = locate ? locate(progress) : path;
        progress.check_canceled();
        auto graph = std::make_shared<graph::MetaGraph>(importers::open_model(found, options));
        progress.check_canceled();
        return make_model(std::move(graph), found, {}, options.follow_links, options.picture_sides);
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
    services.notices.fail("open", *opening.error(), document().id, opened.path);
    return;
  }
  const bool again = opened.in_place_of != 0;
  if (again && find_document(opened.in_place_of) == nullptr) return;  // closed meanwhile
  const std::size_t before = shown_;
  measure_machine();
  // a sheet is about the model that was shown
  if (!again && document().model && (settings.panel == "convert" || settings.panel == "upload"))
    settings.panel = "map";
  const std::uint64_t there = again ? opened.in_place_of : id_with_path(documents_, opening.value()->path);
  adopt(opening.value(), there == 0 && opened.beside ? kNoDocument : there);
  if (!again && !opened.path.empty())
    remember(
        settings, absolute_path(opened.path),
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
            .count());
  if (opened.request) attempt([&] { document().load.ask(asked_by(*opened.request)); });
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

void Workspace::open_beside(const std::string& path) {
  ask_open({.name = "Opening " + safe_display(path, 60), .path = path, .beside = true});
}

void Workspace::open_demo() {
  if (!demo_) demo_ = std::make_shared<io::TemporaryFolder>();
  ask_open({.name = "Writing the demo model", .path = "", .locate = [folder = demo_](Progress& progress) {
              return write_demo_model(folder->path(), progress);
            }});
}

void Workspace::show(graph::MetaGraphPtr graph, std::string path) {
  adopt(make_model(std::move(graph), std::move(path)));
}

void Workspace::attempt(const std::function<void()>& verb) {
  try {
    verb();
  } catch (...) {
    const Error error = current_error();
    services.notices.add(error, error.what(), document().id);
  }
}

// --- The open models: which one is shown, which give way to others, which are read again.

Document* Workspace::find_document(std::uint64_t id) const {
  const auto found =
      std::ranges::find_if(documents_, [&](const auto& document) { return document->id == id; });
  return found != documents_.end() ? found->get() : nullptr;
}

void Workspace::show_document(std::size_t at) {
  if (at >= documents_.size() || at == shown_) return;
  document().panel = settings.panel;
  shown_ = at;
  take_panel();
}

void Workspace::show_start() {
  const auto found = std::ranges::find_if(documents_, [](const auto& one) { return one->model == nullptr; });
  const auto at = static_cast<std::size_t>(found - documents_.begin());
  if (found == documents_.end())
    documents_.push_back(std::make_unique<Document>(services, nullptr, document().kept()));
  show_document(at);
  settings.panel = "map";  // the arena is a page of its own there
}

void Workspace::take_panel() {
  if (!document().panel.empty()) settings.panel = document().panel;
}

void Workspace::adopt(ModelPtr model, std::uint64_t in_place_of) {
  for (std::size_t i = 0; i < documents_.size(); ++i)
    if (documents_[i]->id == in_place_of || (in_place_of == 0 && i == shown_ && !documents_[i]->model))
      return replace(i, std::move(model));
  document().panel = settings.panel;
  documents_.push_back(std::make_unique<Document>(services, std::move(model), document().kept()));
  shown_ = documents_.size() - 1;
  watch_files();
}

void Workspace::replace(std::size_t at, ModelPtr model) {
  const std::unique_ptr<Document> before = std::move(documents_[at]);
  services.notices.forget(before->id);
  const bool again = before->model && model && is_same_path(before->model->path, model->path);
  const Asked asked = before->load.asked();
  documents_[at] = std::make_unique<Document>(services, std::move(model), before->hand_over(again));
  shown_ = at;
  // what refers to this model may hold no longer: then the rest of the question stays
  if (again && of_any_model(asked) != asked) attempt([&] { document().load.ask(asked); });
  watch_files();
}

std::optional<std::size_t> Workspace::nearest_document() const {
  std::optional<std::size_t> nearest;
  const std::uint64_t wanted = document().parameters();
  const auto distance = [&](std::size_t at) {
    const std::uint64_t there = documents_[at]->parameters();
    return there > wanted ? there - wanted : wanted - there;
  };
  for (std::size_t i = 0; i < documents_.size(); ++i)
    if (i != shown_ && documents_[i]->model && (!nearest || distance(i) <= distance(*nearest))) nearest = i;
  return nearest;
}

void Workspace::close_model() {
  // a lesson goes with its model, and what was there before comes back
  if (lesson.plays() && lesson.document == document().id) return stage.leave();
  if (documents_.size() == 1) {
    if (settings.panel == "arena") settings.panel = "map";  // without a model it is a page of its own
    return replace(0, nullptr);
  }
  services.notices.forget(document().id);
  documents_.erase(documents_.begin() + static_cast<std::ptrdiff_t>(shown_));
  shown_ = std::min(shown_, documents_.size() - 1);
  take_panel();
  watch_files();
}

void Workspace::reload() {
  if (!document().model || document().model->path.empty())
    throw Error(ErrorCode::usage, "this model is not in a file");
  reload(shown_);
}

void Workspace::reload(std::size_t at) { read_again(at, documents_[at]->model->picture_sides); }

void Workspace::take_picture_sides(std::vector<importers::NamedSide> sides) {
  if (!document().model || document().model->path.empty())
    throw Error(ErrorCode::usage, "this model is not in a file");
  Asked asked = document().load.asked();
  asked.picture_sides.clear();
  for (const importers::NamedSide& side : sides) asked.picture_sides.emplace_back(side.name, side.pixels);
  document().load.ask(asked);  // so that undo has what was before
  follow_picture_sides();
}

void Workspace::follow_picture_sides() {
  if (!document().model) return;
  std::vector<importers::NamedSide> sides;
  for (const auto& [name, pixels] : document().load.asked().picture_sides) sides.push_back({name, pixels});
  if (!std::ranges::equal(sides, document().model->picture_sides, [](const auto& a, const auto& b) {
        return a.name == b.name && a.pixels == b.pixels;
      }))
    read_again(shown_, std::move(sides));
}

void Workspace::read_again(std::size_t at, std::vector<importers::NamedSide> sides) {
  const Model& model = *documents_[at]->model;
  ToOpen again{.name = "Reloading " + safe_display(model.path, 60), .path = model.path};
  again.sides = std::move(sides);
  if (model.follow_links) again.with = {{"follow_links", "on"}};
  again.in_place_of = documents_[at]->id;
  ask_open(std::move(again));
}

void Workspace::toggle_favorite() {
  if (!document().model || document().model->path.empty())
    throw Error(ErrorCode::usage, "this model is not in a file");
  toggle_favorite(document().model->path);
}

void Workspace::toggle_favorite(const std::string& path) {
  std::vector<std::string>& favorites = settings.favorites;
  if (std::erase(favorites, path) > 0) return;
  favorites.insert(favorites.begin(), path);
  if (favorites.size() > kMostFavorites) favorites.resize(kMostFavorites);
}

bool Workspace::poll() {
  take_changed_files();
  return services.jobs.poll();
}

void Workspace::set_wake(const std::function<void()>& wake) {
  services.jobs.set_wake(wake);
  watch_.set_wake(wake);
}

void Workspace::watch_files() {
  std::vector<std::string> paths;
  for (const std::unique_ptr<Document>& document : documents_)
    if (document->model && !document->model->path.empty())
      for (const graph::ModelFile& file : document->model->graph->files) paths.push_back(file.path);
  watch_.watch(std::move(paths));
}

// Reads models again whose files were written since.
void Workspace::take_changed_files() {
  const std::vector<std::string> changed = watch_.take_changed();
  if (changed.empty()) return;
  const auto is_changed = [&](const graph::ModelFile& file) {
    return std::ranges::find(changed, file.path) != changed.end();
  };
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    const ModelPtr& model = documents_[i]->model;
    if (!model || model->path.empty()) continue;
    const auto file = std::ranges::find_if(model->graph->files, is_changed);
    if (file == model->graph->files.end()) continue;
    services.notices.add(
        graph::Severity::info,
        fmt::format("{} was changed by another program: reloading the model", safe_display(file->path, 120)));
    reload(i);
  }
}

std::string tab_title(const Workspace& workspace, const Document& document) {
  if (!document.model) return "Start";
  const auto alike = std::ranges::count_if(workspace.documents(), [&](const auto& other) {
    return other->model && other->model->name == document.model->name;
  });
  const std::filesystem::path path = document.model->path;
  if (alike < 2 || path.empty()) return document.model->name;
  const std::filesystem::path named = path.has_filename() ? path : path.parent_path();
  return named.filename().string();
}

// --- Devices, and the end.

void Workspace::find_devices() {
  if (services.devices.busy()) return;
  services.devices.ask(
      services.jobs, "Listing GPUs", [](Progress&) { return gpu::list_devices(); },
      [this] {
        if (services.devices.error() != nullptr)
          services.notices.fail("list the GPUs", *services.devices.error());
        measure_machine();
        document().weigh_upload();
      });
}

void Workspace::set_data_sheets(std::vector<load::Target> sheets) {
  services.targets = std::make_shared<const std::vector<load::Target>>(std::move(sheets));
  measure_machine();
}

void Workspace::measure_machine() {
  services.memory = io::system_memory();
  std::vector<load::Target> rows = *services.targets;
  load::Target now = load::machine_target(gpu::machine_memory(devices()));
  const auto close = [](const std::optional<std::uint64_t>& a, const std::optional<std::uint64_t>& b) {
    constexpr std::uint64_t kSame = 64ull << 20;  // so much comes and goes all the time
    return a.has_value() == b.has_value() && (!a || (*a > *b ? *a - *b : *b - *a) < kSame);
  };
  if (!rows.empty() && rows.front().id == load::kThisMachine) {
    const load::Target& before = rows.front();
    if (before.name == now.name && before.memory == now.memory &&
        close(before.device_bytes, now.device_bytes) && close(before.host_bytes, now.host_bytes))
      return;
  }
  std::erase_if(rows, [](const load::Target& row) { return row.id == load::kThisMachine; });
  rows.insert(rows.begin(), std::move(now));
  services.targets = std::make_shared<const std::vector<load::Target>>(std::move(rows));
  for (const std::unique_ptr<Document>& document : documents_)
    if (document->load.asked().request.target == load::kThisMachine) document->load.follow_targets();
}

void Workspace::ask_of_this_machine() {
  find_devices();
  Asked first = document().load.asked();
  first.request.target = load::kThisMachine;
  document().load.ask(first);
  ask_models(settings.prompt, settings.context);
}

void Workspace::ask_models(std::uint64_t prompt, std::uint64_t context) {
  settings.prompt = prompt;
  settings.context = context;
  if (document().model) return;
  // the model that is opened next is asked the same
  const report::RunQuestion question{.prompt = prompt, .context = context};
  Asked asked = document().load.asked();
  asked.first_token = true;
  asked.request.sequence = question.request().sequence;
  asked.request.past = question.request().past;
  document().load.ask(asked);
  document().load.forget_history();  // nobody has asked anything of a model yet
}

void Workspace::look_for_models() {
  const Shelf::Wanted wanted = {settings.favorites, settings.recent, settings.folders,
                                settings.used,      settings.prompt, settings.context};
  if (shelf.is_current(wanted)) return;
  measure_machine();
  shelf.look(wanted);
}

void Workspace::forget_model(const std::string& path) {
  std::erase(settings.favorites, path);
  std::erase(settings.recent, path);
  settings.used.erase(path);
}

void Workspace::choose_device(std::string device) {
  services.device = std::move(device);
  document().weigh_upload();
}

void Workspace::ask_quit() {
  if (!transfers.busy() || services.requests.holds<AskQuit>())
    services.requests.add(Quit{});
  else
    services.requests.add(AskQuit{});
}

// --- Opens and saves load requests, and applies remedies.

void Workspace::open_request(const std::string& path, const std::string& model) {
  load::SavedRequest saved = load::read_request(path);
  const std::string wanted = model.empty() ? saved.model.value_or("") : model;
  if (wanted.empty() || (document().model && is_same_path(document().model->path, wanted)))
    return document().load.ask(asked_by(std::move(saved.request)));
  ask_open(
      {.name = "Opening " + safe_display(wanted, 60), .path = wanted, .request = std::move(saved.request)});
}

void Workspace::save_request(const std::string& path) {
  if (!path.ends_with(".json"))
    throw Error(ErrorCode::usage, "'{}' does not end in .json: Loadline overwrites only such files",
                safe_display(path, 120));
  std::optional<std::string> model;
  if (document().model && !document().model->path.empty()) {
    std::error_code failed;
    const std::filesystem::path absolute = std::filesystem::absolute(document().model->path, failed);
    // org/name of a cache is no path
    model = !failed && std::filesystem::exists(absolute, failed) ? absolute.string() : document().model->path;
  }
  report::write_file(path, load::request_text_beside(saved_request(document().load.asked()), model, path));
  services.notices.add(graph::Severity::info, fmt::format("The request is in {}", safe_display(path, 120)));
}

void Workspace::mend(const std::vector<Remedy>& remedies, const std::string& path) {
  switch (remedy_kind(remedies)) {
    case RemedyKind::open:
      return open(path, remedies);
    case RemedyKind::load:
      for (const Remedy& remedy : remedies) document().load.set_option(remedy.option, remedy.value);
      return;
    case RemedyKind::convert:
      document().checks.suggested = remedies;
      settings.panel = "convert";
      return;
  }
}

}  // namespace loadline::gui
