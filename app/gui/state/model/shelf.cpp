// Lists the stores, reads a few models in one job, tries quantizations of those that do not run.
#include "app/gui/state/model/shelf.h"

#include "app/gui/state/base/services.h"
#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/io/atomic_file.h"
#include "importers/resolve.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <sys/stat.h>

namespace loadline::gui {
namespace {

// So many that a job lasts about as long as somebody waits for the first rows, and so few that they come one
// after the other.
constexpr std::size_t kAtOnce = 12;
constexpr std::size_t kReaders = 2;

// What a job needs of the window.
struct Question {
  importers::ResolveOptions open;
  std::shared_ptr<const forward::ForwardAssets> assets;
  report::RunQuestion asked;

  load::LoadEnvironment environment() const { return {.assets = assets, .targets = {&asked.target, 1}}; }
};

report::ModelFacts read_facts(const Question& question, const std::string& path,
                              const report::ModelFacts* before, Progress& progress) {
  try {
    const graph::MetaGraph graph = importers::open_model(path, question.open);
    const load::LoadEnvironment environment = question.environment();
    if (before == nullptr) return report::model_facts(graph, question.asked, environment, progress);
    report::ModelFacts facts = *before;
    facts.tried_types = true;
    report::find_better(*facts.row, graph, question.asked.request(), question.assets->type_policies,
                        environment, progress);
    return facts;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::canceled) throw;
    return {.fault = error.what()};
  }
}

// A path that the user opened, as the stores list theirs: a folder counts with the files in it.
importers::StoredModel opened_model(const std::string& path) {
  constexpr std::size_t kMostFiles = 1000;
  const std::filesystem::path whole(path);
  const std::filesystem::path named = whole.filename().empty() ? whole.parent_path() : whole;
  importers::StoredModel model{.name = named.filename().string(), .path = path};
  const auto add = [&](const std::filesystem::path& file) {
    struct stat status = {};
    if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    model.bytes += static_cast<std::uint64_t>(status.st_size);
    model.changed = std::max(model.changed, io::changed_at(status));
  };
  std::error_code failed;
  std::size_t count = 0;
  if (!std::filesystem::is_directory(whole, failed)) {
    add(whole);
  } else {
    std::filesystem::directory_iterator at(whole, failed);
    for (; !failed && at != std::filesystem::directory_iterator() && ++count < kMostFiles;
         at.increment(failed))
      add(at->path());
  }
  return model;
}

report::KeptFacts::Key key_of(const ShelfModel& model) {
  return report::KeptFacts::key_of(model.stored.path, model.stored.bytes, model.stored.changed);
}

}  // namespace

// --- One model, and which of them are listed.

std::string ShelfModel::missing_part() const {
  return report::missing_part(stored.incomplete, stored.unfinished, facts ? facts->row : std::nullopt);
}

bool ShelfModel::runs() const {
  return facts && facts->row && facts->row->verdict.fits() && missing_part().empty();
}

namespace {

// Whether every word of the filter is in one of these.
bool passes(const ShelfModel& model, std::string_view filter) {
  if (filter.empty()) return true;
  std::string all = lower_case(model.stored.name + "\n" + model.stored.path + "\n");
  all += importers::store_id(model.stored.store);
  if (model.facts && model.facts->row)
    all += "\n" + lower_case(model.facts->row->type + "\n" + model.facts->row->format);
  const std::string wanted = lower_case(filter);
  for (std::size_t at = 0; at < wanted.size();) {
    const std::size_t end = std::min(wanted.find(' ', at), wanted.size());
    if (all.find(wanted.substr(at, end - at)) == std::string::npos) return false;
    at = end + 1;
  }
  return true;
}

// The less the better: what runs, then what runs in part, what does not, what cannot be read, what is gone.
std::uint64_t verdict_rank(const ShelfModel& model) {
  using State = report::RunVerdict::State;
  constexpr std::uint64_t kTight = 2, kIncomplete = 3, kOver = 4, kFault = 5, kUnknown = 6, kGone = 7;
  if (model.gone) return kGone;
  if (!model.missing_part().empty()) return kIncomplete;
  if (model.facts && !model.facts->row) return kFault;
  if (!model.facts || !model.facts->is_judged()) return kUnknown;
  switch (model.facts->row->verdict.state) {
    case State::fits:
      return 0;
    case State::estimated:
    case State::unjudged:
      return 1;
    case State::tight:
      return kTight;
    case State::incomplete:
      return kIncomplete;
    default:
      return kOver;
  }
}

// Nothing where the model has no such figure.
std::optional<std::uint64_t> figure(const ShelfModel& model, ShelfColumn column) {
  const report::ModelRow* const row = model.facts && model.facts->row ? &*model.facts->row : nullptr;
  if (column == ShelfColumn::size && row != nullptr) return row->bytes;
  if (column == ShelfColumn::size && model.stored.bytes > 0) return model.stored.bytes;
  if (column == ShelfColumn::verdict) return verdict_rank(model);
  if (column == ShelfColumn::context && row != nullptr) return row->verdict.context;
  if (column == ShelfColumn::used && model.used > 0) return static_cast<std::uint64_t>(model.used);
  return std::nullopt;
}

// The less the earlier: favorites, recent ones from the last on, what runs, what does not; large ones first.
// Rows keep their places while others are read.
std::array<std::uint64_t, 5> kept_rank(const ShelfModel& model, bool all_read) {
  const std::uint64_t bytes = figure(model, ShelfColumn::size).value_or(0);
  const std::uint64_t used =
      model.recent ? static_cast<std::uint64_t>(std::max<std::int64_t>(0, model.used)) : 0;
  return {model.favorite ? 0u : 1u, model.recent ? 0u : 1u, UINT64_MAX - used,
          all_read ? verdict_rank(model) : 0, UINT64_MAX - bytes};
}

}  // namespace

std::vector<std::size_t> shelf_rows(std::span<const ShelfModel> models, const ShelfView& view) {
  std::vector<std::size_t> rows;
  const bool all_read = std::ranges::all_of(models, &ShelfModel::is_answered);
  for (std::size_t i = 0; i < models.size(); ++i)
    if (passes(models[i], view.filter) && (!view.only_runs || models[i].runs())) rows.push_back(i);
  if (view.by == ShelfColumn::kept) {
    std::ranges::stable_sort(rows, {}, [&](std::size_t i) { return kept_rank(models[i], all_read); });
    return rows;
  }
  if (view.by == ShelfColumn::name) {
    std::vector<std::string> names(models.size());
    for (const std::size_t i : rows) names[i] = lower_case(models[i].stored.name);
    std::ranges::stable_sort(rows, [&](std::size_t a, std::size_t b) {
      return view.ascending ? natural_less(names[a], names[b]) : natural_less(names[b], names[a]);
    });
    return rows;
  }
  std::vector<std::optional<std::uint64_t>> figures(models.size());
  for (const std::size_t i : rows) figures[i] = figure(models[i], view.by);
  std::ranges::stable_sort(rows, [&](std::size_t a, std::size_t b) {
    if (!figures[a] || !figures[b]) return figures[a].has_value() && !figures[b].has_value();
    return view.ascending ? *figures[a] < *figures[b] : *figures[b] < *figures[a];
  });
  return rows;
}

// --- The list, and the reading.

report::RunQuestion Shelf::asked(const Wanted& wanted) const {
  return {report::steadied(services_.targets->front()), wanted.prompt, wanted.context};
}

bool Shelf::is_current(const Wanted& wanted) const {
  // so old is a list that a download or a conversion may be missing in it
  constexpr std::chrono::seconds kOld{15};
  return wanted == wanted_ && asked(wanted).text() == question_text_ &&
         std::chrono::steady_clock::now() - looked_at_ < kOld;
}

std::size_t Shelf::unread() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(models_, [](const ShelfModel& model) { return !model.is_answered(); }));
}

void Shelf::look(Wanted wanted) {
  if (listed_.busy()) return;
  question_ = asked(wanted);
  if (std::string text = question_.text(); text != question_text_) {
    read_.withdraw();  // what it would bring answers another question
    question_text_ = std::move(text);
    asks_anew_ = true;
  }
  wanted_ = std::move(wanted);
  looked_at_ = std::chrono::steady_clock::now();
  importers::StorePlaces places = places_;
  places.folders.insert(places.folders.end(), wanted_.folders.begin(), wanted_.folders.end());
  std::optional<report::KeptFacts> kept;
  if (!std::exchange(has_read_kept_, true)) kept = kept_;
  listed_.ask(
      services_.jobs, "Listing models",
      [places, kept = std::move(kept)](Progress& progress) {
        Listed listed{importers::stored_models(places, progress), kept};
        if (listed.kept) listed.kept->read();
        return listed;
      },
      [this] { take_list(); });
}

void Shelf::take_list() {
  asks_anew_ = false;
  std::vector<ShelfModel> models;
  const auto find = [&](const std::string& path) {
    return std::ranges::find_if(models, [&](const ShelfModel& model) {
      return model.stored.path == path ||
             (model.stored.store == importers::Store::hub && model.stored.name == path);
    });
  };
  if (listed_.value() && listed_.value()->kept) kept_ = *listed_.value()->kept;
  if (listed_.value())
    for (const importers::StoredModel& stored : listed_.value()->found.models) models.push_back({stored});
  const auto add = [&](const std::string& path, bool ShelfModel::*mark) {
    if (find(path) == models.end()) models.push_back({opened_model(path)});
    *find(path).*mark = true;
  };
  for (const std::string& path : wanted_.favorites) add(path, &ShelfModel::favorite);
  for (const std::string& path : wanted_.recent) add(path, &ShelfModel::recent);
  for (ShelfModel& model : models) {
    std::error_code failed;
    const bool opened = model.favorite || model.recent;
    model.gone = opened && !std::filesystem::exists(model.stored.path, failed);
    model.facts = kept_.find(key_of(model), question_text_);
    for (const auto& [path, at] : wanted_.used)
      if (path == model.stored.path || path == model.stored.name) model.used = std::max(model.used, at);
  }
  std::ranges::stable_sort(models, [](const ShelfModel& a, const ShelfModel& b) {
    return std::pair(!a.favorite, !a.recent) < std::pair(!b.favorite, !b.recent);
  });
  models_ = std::move(models);
  read_.withdraw();
  read_next();
}

void Shelf::read_next() {
  std::vector<std::pair<std::size_t, std::shared_ptr<const report::ModelFacts>>> wanted;
  for (std::size_t i = 0; i < models_.size() && wanted.size() < kAtOnce; ++i)
    if (!models_[i].is_answered()) wanted.emplace_back(i, nullptr);
  // once every model has its row, what would run of those that do not
  for (std::size_t i = 0; i < models_.size() && wanted.size() < kReaders; ++i)
    if (models_[i].facts && models_[i].facts->row && models_[i].is_answered() &&
        !models_[i].facts->tried_types)
      wanted.emplace_back(i, models_[i].facts);
  if (wanted.empty()) return write_kept();
  std::vector<std::string> paths;
  for (const auto& [at, facts] : wanted) paths.push_back(models_[at].stored.path);
  Question question{{}, services_.assets, question_};
  question.open.hub_cache = places_.hub_cache;
  question.open.assets = [assets = services_.assets] { return assets; };
  read_.ask(
      services_.jobs, "Reading headers of models",
      [wanted = std::move(wanted), paths = std::move(paths), question](Progress& progress) {
        std::vector<Read> found(wanted.size());
        ParallelLoop(wanted.size(), std::min(kReaders, wanted.size()), [&](std::size_t i) {
          progress.check_canceled();
          found[i] = {wanted[i].first, std::make_shared<const report::ModelFacts>(
                                           read_facts(question, paths[i], wanted[i].second.get(), progress))};
        }).finish();
        return found;
      },
      [this] {
        if (read_.error() != nullptr) return;
        for (const Read& read : read_.or_empty()) {
          ShelfModel& model = models_[read.at];
          model.facts = read.facts;
          kept_.keep(key_of(model), question_text_, read.facts);
        }
        read_next();
      });
}

// What could not be kept is read again the next time, and nobody needs to know.
void Shelf::write_kept() {
  if (!kept_.is_changed()) return;
  kept_.mark_written();
  written_.ask(services_.jobs, "Keeping what was read of models", [kept = kept_](Progress&) mutable {
    try {
      kept.write();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  });
}

}  // namespace loadline::gui
