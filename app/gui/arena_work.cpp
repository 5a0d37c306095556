// Jobs with tags: a change of what is chosen replaces what is under way.
#include "app/gui/arena_work.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

// That one, or where nothing is in it the first buffer's.
std::uint32_t used_arena(const Problem& problem, std::uint32_t arena) {
  const std::vector<Buffer>& buffers = problem.buffers;
  const bool used =
      std::any_of(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.arena == arena; });
  return used || buffers.empty() ? arena : buffers.front().arena;
}

}  // namespace

void ArenaWork::open(const std::string& path) {
  const std::uint64_t number = ++count_;
  opening_ = number;
  jobs_.post(
      "Reading " + safe_display(path, 60), "arena file", [path](Progress&) { return file_arena(path); },
      [this, number](Outcome<ArenaProblemPtr> outcome) {
        if (opening_ != number) return;
        opening_ = 0;
        if (!outcome.ok()) return fail_(outcome.error());
        file_ = outcome.value();
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
  if (file_) sources.push_back(ArenaSource::file);
  sources.push_back(ArenaSource::example);
  return sources;
}

ArenaSource ArenaWork::source(const ArenaModel& model) const {
  const std::vector<ArenaSource> known = sources(model);
  if (source_ && std::find(known.begin(), known.end(), *source_) != known.end()) return *source_;
  return known.front();
}

void ArenaWork::choose(ArenaSource source, const ArenaModel& model) {
  const std::vector<ArenaSource> known = sources(model);
  if (std::find(known.begin(), known.end(), source) == known.end()) {
    std::string ids;
    for (const ArenaSource id : known) ids += (ids.empty() ? "" : ", ") + std::string(arena_source_id(id));
    throw Error(ErrorCode::usage,
                fmt::format("nothing to pack of '{}'; there are: {}", arena_source_id(source), ids));
  }
  source_ = source;
}

void ArenaWork::update(const ArenaModel& model) {
  Asked asked{source(model), options_, {}, {}, {}};
  if (asked.source == ArenaSource::pass)
    asked.figures = model.figures;
  else if (asked.source == ArenaSource::file)
    asked.file = file_;
  else if (asked.source != ArenaSource::example)
    asked.projection = model.projection;
  if (asked_ == asked) return;
  post(asked, model);
}

void ArenaWork::post(const Asked& asked, const ArenaModel& model) {
  const bool same = asked_ && asked_->source == asked.source && asked_->file == asked.file;
  if (!same) view.time = view.height = {}, view.arena = 0, view.step = 0, view.playing = false;
  asked_ = asked;
  cancelled_ = false;
  error_.clear();
  const std::uint64_t number = ++count_;
  packing_ = number;
  jobs_.post(
      "Packing the arena", "arena",
      [asked, model](Progress& progress) {
        ArenaProblemPtr problem = asked.source == ArenaSource::file      ? asked.file
                                  : asked.source == ArenaSource::example ? example_arena()
                                                                         : model_arena(asked.source, model);
        return make_arena_scene(std::move(problem), asked.options, progress);
      },
      [this, number](Outcome<std::shared_ptr<const ArenaScene>> outcome) {
        if (packing_ != number) return;
        packing_ = 0;
        if (outcome.ok()) {
          scene_ = outcome.value();
          view.arena = used_arena(scene_->of->problem, view.arena);
          return;
        }
        cancelled_ = outcome.error().code() == ErrorCode::cancelled;
        if (cancelled_) return;
        scene_.reset();
        error_ = outcome.error().what();
      });
}

void ArenaWork::update_steps() {
  if (!scene_ || scene_->of->problem.buffers.size() > kMostTraced) return;
  const Traced wanted{scene_, view.arena, view.rule};
  if (traced_ == wanted) return;
  if (!traced_ || traced_->scene != scene_) view.step = 0, view.playing = false;
  traced_ = wanted;
  steps_.reset();
  steps_error_.clear();
  steps_cancelled_ = false;
  const std::uint64_t number = ++count_;
  tracing_ = number;
  jobs_.post(
      "Packing step by step", "arena steps",
      [wanted](Progress& progress) {
        return make_arena_steps(wanted.scene, wanted.arena, wanted.rule, progress);
      },
      [this, number](Outcome<std::shared_ptr<const ArenaSteps>> outcome) {
        if (tracing_ != number) return;
        tracing_ = 0;
        if (outcome.ok())
          steps_ = outcome.value();
        else if (outcome.error().code() == ErrorCode::cancelled)
          steps_cancelled_ = true;
        else
          steps_error_ = outcome.error().what();
        if (steps_) view.step = std::min(view.step, steps_->length());
      });
}

void ArenaWork::cancel() {
  jobs_.cancel_tagged("arena");
  jobs_.cancel_tagged("arena steps");
}

void ArenaWork::retry() {
  if (cancelled_) asked_.reset();
  if (steps_cancelled_) traced_.reset();
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
    jobs_.cancel_tagged("arena");
    packing_ = 0;
    error_.clear();
  }
  if (!scene_ || !of_model(scene_->of->source)) return;
  scene_.reset();
  steps_.reset();
  traced_.reset();
  jobs_.cancel_tagged("arena steps");
  tracing_ = 0;
  steps_error_.clear();
  steps_cancelled_ = false;
  view.step = 0;
  view.playing = false;
}

}  // namespace loadline::gui
