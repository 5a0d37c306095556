// Packs and traces in the background; a new choice replaces the packing under way.
#include "app/gui/state/load/arena_work.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>

namespace loadline::gui {
namespace {

// The arena asked for, or if that one is empty, the arena of the first buffer.
std::uint32_t used_arena(const Problem& problem, std::uint32_t arena) {
  const std::vector<Buffer>& buffers = problem.buffers;
  const bool used = std::ranges::any_of(buffers, [&](const Buffer& b) { return b.arena == arena; });
  return used || buffers.empty() ? arena : buffers.front().arena;
}

}  // namespace

void ArenaWork::open(const std::string& path) {
  file_.ask(
      jobs_, "Reading " + safe_display(path, 60), [path](Progress&) { return file_arena(path); },
      [this] {
        if (file_.error() != nullptr) return fail_(*file_.error());
        source_ = ArenaSource::file;
      });
}

std::vector<ArenaSource> ArenaWork::sources(const ArenaModel& model) const {
  if (scanned_ != model.projection) {
    scanned_ = model.projection;
    spaces_.clear();
    for (const ArenaSource space : {ArenaSource::device, ArenaSource::host, ArenaSource::staging})
      if (has_buffers(space, model)) spaces_.push_back(space);
  }
  std::vector<ArenaSource> sources;
  if (has_buffers(ArenaSource::pass, model)) sources.push_back(ArenaSource::pass);
  sources.insert(sources.end(), spaces_.begin(), spaces_.end());
  if (file()) sources.push_back(ArenaSource::file);
  sources.push_back(ArenaSource::example);
  return sources;
}

ArenaSource ArenaWork::source(const ArenaModel& model) const {
  const std::vector<ArenaSource> known = sources(model);
  if (source_ && std::ranges::find(known, *source_) != known.end()) return *source_;
  return known.front();
}

void ArenaWork::choose(ArenaSource source, const ArenaModel& model) {
  const std::vector<ArenaSource> known = sources(model);
  if (std::ranges::find(known, source) == known.end()) {
    std::string ids;
    for (const ArenaSource id : known)
      ids += (ids.empty() ? "" : ", ") + std::string(kArenaSourceIds[static_cast<std::size_t>(id)]);
    throw Error(ErrorCode::usage, "nothing to pack of '{}'; there are: {}",
                kArenaSourceIds[static_cast<std::size_t>(source)], ids);
  }
  source_ = source;
}

void ArenaWork::update(const ArenaModel& model) {
  Asked asked{source(model), options, {}, {}, {}};
  if (asked.source == ArenaSource::pass)
    asked.figures = model.figures;
  else if (asked.source == ArenaSource::file)
    asked.file = file();
  else if (asked.source != ArenaSource::example)
    asked.projection = model.projection;
  if (asked_ == asked) return;
  const bool same = asked_ && asked_->source == asked.source && asked_->file == asked.file;
  if (!same) view.time = view.height = {}, view.arena = 0, view.step = 0, view.playing = false;
  asked_ = asked;
  scene_.ask(
      jobs_, "Packing the arena",
      [asked, model](Progress& progress) {
        ArenaProblemPtr problem = asked.source == ArenaSource::file      ? asked.file
                                  : asked.source == ArenaSource::example ? example_arena()
                                                                         : model_arena(asked.source, model);
        return make_arena_scene(std::move(problem), asked.options, progress);
      },
      [this] {
        if (scene_.error() == nullptr)
          view.arena = used_arena(scene()->of->problem, view.arena);
        else if (!cancelled())
          scene_.drop();
      });
}

void ArenaWork::update_steps() {
  if (!scene() || scene()->of->problem.buffers.size() > kMostTraced) return;
  const Traced wanted{scene(), view.arena, view.rule};
  if (traced_ == wanted) return;
  if (!traced_ || traced_->scene != scene()) view.step = 0, view.playing = false;
  traced_ = wanted;
  steps_.reset();
  steps_.ask(
      jobs_, "Packing step by step",
      [wanted](Progress& progress) {
        return make_arena_steps(wanted.scene, wanted.arena, wanted.rule, progress);
      },
      [this] {
        if (steps()) view.step = std::min(view.step, steps()->length());
      });
}

void ArenaWork::cancel() {
  scene_.cancel();
  steps_.cancel();
}

void ArenaWork::retry() {
  if (cancelled()) asked_.reset();
  if (steps_cancelled()) traced_.reset();
}

void ArenaWork::forget_model() {
  const auto of_model = [](ArenaSource source) {
    return source != ArenaSource::file && source != ArenaSource::example;
  };
  scanned_.reset();
  spaces_.clear();
  if (source_ && of_model(*source_)) source_.reset();
  if (asked_ && of_model(asked_->source)) {
    asked_.reset();
    scene_.withdraw();
  }
  if (!scene() || !of_model(scene()->of->source)) return;
  scene_.drop();
  steps_.reset();
  traced_.reset();
  view.step = 0;
  view.playing = false;
}

}  // namespace loadline::gui
