// Makes packing problems, packs and traces them in the background.
#include "app/gui/state/load/arena.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/packing/greedy.h"
#include "core/plan/reserved_memory.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/core.h>

namespace loadline::gui {

// --- Makes packing problems from plans, passes and files, packs them, and describes the results in words.

namespace {

constexpr std::uint64_t kAlignment = 256;

plan::Space space_of(ArenaSource source) {
  return source == ArenaSource::host      ? plan::Space::host
         : source == ArenaSource::staging ? plan::Space::staging
                                          : plan::Space::device;
}

ArenaKind kind_of(plan::BlockUse use) {
  return use == plan::BlockUse::storage     ? ArenaKind::weights
         : use == plan::BlockUse::value     ? ArenaKind::activations
         : use == plan::BlockUse::ring_slot ? ArenaKind::ring
                                            : ArenaKind::temporaries;
}

// A few buffers get a color each. Many buffers are colored by size, in eighths of the sizes that occur.
void set_kinds(ArenaProblem& arena) {
  constexpr std::size_t kKinds = 8, kFew = 16;
  arena.palette = arena.problem.buffers.size() <= kFew ? ArenaPalette::each : ArenaPalette::sizes;
  if (arena.palette == ArenaPalette::each) {
    for (std::size_t i = 0; i < arena.problem.buffers.size(); ++i)
      arena.kinds.push_back(static_cast<std::uint8_t>(i % kKinds));
    return;
  }
  std::vector<std::uint64_t> sizes;
  for (const packing::Buffer& buffer : arena.problem.buffers) sizes.push_back(buffer.size);
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (const packing::Buffer& buffer : arena.problem.buffers) {
    const auto rank = std::lower_bound(sizes.begin(), sizes.end(), buffer.size) - sizes.begin();
    const std::size_t last = std::max<std::size_t>(sizes.size() - 1, 1);
    arena.kinds.push_back(static_cast<std::uint8_t>(static_cast<std::size_t>(rank) * (kKinds - 1) / last));
  }
}

void add_values(ArenaProblem& arena, const std::vector<graph::ValueId>& values, ArenaKind kind) {
  const ForwardScene& scene = *arena.of.forward;
  for (const graph::ValueId id : values) {
    const auto at = static_cast<std::size_t>(id);
    const std::uint64_t bytes = arena.of.figures->sizes[at].value_or(0);
    const forward::OpRange& ops = scene.model.lives[at];
    if (bytes == 0 || ops.empty()) continue;
    arena.problem.buffers.push_back(
        {.lower = ops.first, .upper = ops.end, .size = align_up(bytes, kAlignment), .alignment = kAlignment});
    arena.values.push_back(id);
    arena.kinds.push_back(static_cast<std::uint8_t>(kind));
  }
}

// Time limit for the figures beside the packing.
packing::StopRule patience(const Progress& progress) {
  constexpr auto kPatience = std::chrono::seconds(2);
  packing::StopRule rule;
  rule.stop = progress.stop_token();
  rule.deadline = std::chrono::steady_clock::now() + kPatience;
  return rule;
}

}  // namespace

std::string ArenaProblem::name(std::uint32_t buffer) const {
  if (!blocks.empty())
    return plan::block_label(of.projection->plan.block(blocks[buffer]), *of.model->graph, of.model->owners);
  if (!values.empty()) return of.forward->forward()->values[static_cast<std::size_t>(values[buffer])].name;
  return problem.id_of(buffer);
}

std::optional<graph::TensorId> ArenaProblem::tensor(std::uint32_t buffer) const {
  if (blocks.empty()) return std::nullopt;
  const auto& storage = of.projection->plan.block(blocks[buffer]).storage;
  return storage ? of.model->owners[graph::index(*storage)] : std::nullopt;
}

bool has_buffers(ArenaSource source, const ArenaModel& model) {
  if (source == ArenaSource::pass)
    return model.forward && model.forward->forward() != nullptr && model.figures &&
           model.figures->peak.bytes > 0;
  return model.projection &&
         std::ranges::any_of(model.projection->plan.blocks, [&](const plan::Block& block) {
           return block.space == space_of(source) && block.bytes > 0;
         });
}

ArenaProblemPtr model_arena(ArenaSource source, const ArenaModel& model) {
  auto arena = std::make_shared<ArenaProblem>();
  arena->source = source;
  arena->of = model;
  if (source == ArenaSource::pass) {
    arena->title = "Activations of the forward pass";
    arena->tick = "operator";
    add_values(*arena, model.forward->activations, ArenaKind::activations);
    add_values(*arena, model.forward->temporaries, ArenaKind::temporaries);
  } else {
    const plan::Space space = space_of(source);
    arena->title = fmt::format("{} memory of {}", plan::space_title(space), model.projection->method->id);
    arena->tick = "step";
    plan::SpaceProblem made =
        plan::space_problem(model.projection->plan, model.projection->timeline, space, kAlignment);
    arena->problem = std::move(made.problem);
    arena->blocks = std::move(made.blocks);
    for (const plan::BlockId id : arena->blocks)
      arena->kinds.push_back(static_cast<std::uint8_t>(kind_of(model.projection->plan.block(id).use)));
  }
  packing::check_problem(arena->problem);
  return arena;
}

ArenaProblemPtr example_arena() {
  auto arena = std::make_shared<ArenaProblem>();
  arena->source = ArenaSource::example;
  arena->title = "Ten buffers that greedy cannot pack";
  arena->problem = packing::teaching_problem();
  set_kinds(*arena);
  return arena;
}

ArenaProblemPtr file_arena(const std::string& path) {
  auto arena = std::make_shared<ArenaProblem>();
  arena->source = ArenaSource::file;
  arena->title = std::filesystem::path(path).filename().string();
  arena->problem = plan::read_packing_file(path);
  arena->arenas = packing::arena_count(arena->problem);
  set_kinds(*arena);
  return arena;
}

std::shared_ptr<const ArenaScene> make_arena_scene(ArenaProblemPtr problem, const ArenaOptions& options,
                                                   Progress& progress) {
  auto scene = std::make_shared<ArenaScene>();
  scene->of = std::move(problem);
  scene->options = options;
  packing::PackOptions wanted = {.seconds = options.seconds, .threads = options.threads};
  if (options.capacity)
    wanted.capacity.assign(scene->of->arenas, options.capacity);
  else
    wanted.minimize = true;
  scene->packing = packing::pack(scene->of->problem, wanted, progress);
  if (scene->packing.offsets.size() != scene->of->problem.buffers.size())
    throw Error(ErrorCode::limit, "alignments leave no packing below 2^62 bytes");
  scene->greedy = packing::greedy_by_size_heights(scene->of->problem, patience(progress));
  scene->greedy.resize(scene->of->arenas);
  scene->buffers.assign(scene->of->arenas, 0);
  for (const packing::Buffer& buffer : scene->of->problem.buffers) ++scene->buffers[buffer.arena];
  for (std::uint32_t arena = 0; arena < scene->of->arenas; ++arena) {
    progress.check_canceled();
    scene->charts.emplace_back(scene->of->problem, scene->packing.offsets, arena);
  }
  return scene;
}

std::shared_ptr<const ArenaSteps> make_arena_steps(std::shared_ptr<const ArenaScene> scene,
                                                   std::uint32_t arena, std::size_t rule,
                                                   Progress& progress) {
  auto steps = std::make_shared<ArenaSteps>();
  steps->of = std::move(scene);
  steps->arena = arena;
  steps->rule = rule;
  const ArenaScene& of = *steps->of;
  steps->capacity = of.options.capacity.value_or(of.packing.arenas[arena].height);
  steps->greedy = packing::greedy_trace(of.of->problem, packing::greedy_rules()[rule], steps->capacity, arena,
                                        patience(progress));
  progress.check_canceled();
  steps->search =
      packing::search_trace(of.of->problem, steps->capacity, {.arena = arena}, patience(progress));
  progress.check_canceled();
  return steps;
}

std::string capacity_text(const ArenaScene& scene, std::uint32_t arena) {
  if (!scene.options.capacity) return "";
  const std::uint64_t capacity = *scene.options.capacity;
  const packing::ArenaPacking& packing = scene.packing.arenas[arena];
  if (packing.height <= capacity)
    return packing.height == capacity
               ? std::string("Fits to the last byte")
               : fmt::format("Fits, {} to spare", format_bytes(capacity - packing.height));
  if (packing.lower_bound > capacity)
    return fmt::format("Cannot fit (proved): {} more is needed at least",
                       format_bytes(packing.lower_bound - capacity));
  return fmt::format("Undecided in {:.3g} s: the best found is {} over", scene.options.seconds,
                     format_bytes(packing.height - capacity));
}

std::string step_text(const ArenaSteps& steps, const packing::PackingTrace& trace, std::size_t at) {
  const ArenaProblem& of = *steps.of->of;
  if (at == 0 && !trace.steps.empty()) return "Nothing is placed yet";
  if (at >= trace.steps.size()) {
    switch (trace.end) {
      case packing::TraceEnd::packed:
        return fmt::format("All placed: ends at {}", format_bytes(trace.height));
      case packing::TraceEnd::too_high:
        if (trace.steps.back().event == packing::PackingEvent::too_high) break;
        return fmt::format("Ends at {}, capacity {}", format_bytes(trace.height),
                           format_bytes(steps.capacity));
      case packing::TraceEnd::infeasible:
        return "Search complete: no packing is that low";
      case packing::TraceEnd::gave_up:
        return trace.attempts == 0 ? std::string("Not finished in time")
                                   : fmt::format("Gave up after {}", counted(trace.attempts, "attempt"));
    }
  }
  constexpr std::size_t kMostName = 48;
  const packing::PackingStep& step = trace.steps[std::min(at, trace.steps.size()) - 1];
  const std::uint64_t end = step.offset + of.problem.buffers[step.buffer].size;
  const std::string name = safe_display(of.name(step.buffer), kMostName);
  switch (step.event) {
    case packing::PackingEvent::placed:
      return fmt::format("Places {} at {}", name, format_bytes(step.offset));
    case packing::PackingEvent::taken_back: {
      const bool at_once = at >= 2 && trace.steps[at - 2].buffer == step.buffer;
      return fmt::format("Removes {}: {}", name,
                         at_once ? "no room is left for the rest at some tick" : "no other buffer fits next");
    }
    case packing::PackingEvent::too_high:
      break;
  }
  return fmt::format("{} ends at {}, capacity {}", name, format_bytes(end), format_bytes(steps.capacity));
}

// --- Packs and traces in the background; a new choice replaces the packing under way.

namespace {

// The arena asked for, or if that one is empty, the arena of the first buffer.
std::uint32_t used_arena(const packing::Problem& problem, std::uint32_t arena) {
  const std::vector<packing::Buffer>& buffers = problem.buffers;
  const bool used = std::ranges::any_of(buffers, [&](const packing::Buffer& b) { return b.arena == arena; });
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
        else if (!canceled())
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
  if (canceled()) asked_.reset();
  if (steps_canceled()) traced_.reset();
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
