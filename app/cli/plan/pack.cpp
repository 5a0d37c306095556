// loadline pack: solves a packing problem, made from a file or from the projected run of a model.
#include "app/cli/plan/pack.h"

#include "app/cli/base/command.h"
#include "app/cli/base/option_flags.h"
#include "app/cli/plan/load_flags.h"
#include "app/cli/plan/plan_display.h"
#include "app/report/page_parts.h"
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/answer/projection.h"
#include "core/load/order/optimal_order.h"
#include "core/load/request/bind_request.h"
#include "core/packing/greedy.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"
#include "core/packing/search_control.h"
#include "core/plan/dry_machine.h"
#include "core/plan/reserved_memory.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

// --- Projects the run of a model that the options ask for.

namespace {

// Tokens of the pass if neither a load nor a pass is requested.
constexpr std::uint64_t kPackedTokens = 512;

plan::Space space_of(const std::string& name) {
  for (const plan::Space space : plan::spaces_in(plan::kHeldSpaces))
    if (plan::space_name(space) == name) return space;
  throw Error(ErrorCode::usage, "--space: no space '{}'", safe_display(name, 40));
}

// Without a load or a pass in the request, packs a pass of kPackedTokens tokens.
load::LoadRequest with_pass(load::LoadRequest request) {
  if (request.methods.empty() && !load::asks_for_pass(request)) request.sequence = kPackedTokens;
  return request;
}

std::string pass_text(const load::RequestPass& forward) {
  std::string text = fmt::format("a forward pass of {} x {}", format_grouped(forward.batch()),
                                 counted(forward.sequence(), "token"));
  if (forward.past() > 0) text += fmt::format(" after {}", format_grouped(forward.past()));
  if (const std::string& profile = forward.model().profile; !profile.empty())
    text += fmt::format(" (profile {})", safe_display(profile, 40));
  return text;
}

// The pass of the request. Without a load a pass is needed; if none is known, Error{unsupported} suggests a
// load instead.
std::shared_ptr<const load::RequestPass> find_pass(const Context& context, const graph::MetaGraph& graph,
                                                   const std::string& path,
                                                   const load::LoadRequest& request) {
  const bool needed = request.methods.empty();
  auto forward = std::make_shared<const load::RequestPass>(
      graph, with_pass(request), context.assets(),
      needed ? load::UnknownPass::leave_out : load::UnknownPass::refuse);
  if (!needed || forward->pass() != nullptr) return forward;
  const std::string& remark = forward->model().remark;
  throw Error(
      ErrorCode::unsupported, {.file = path},
      "the forward pass is unknown: {}; --method ID packs a load instead, such as --method per_tensor",
      remark.empty() ? "the file holds no operators" : remark);
}

void project_pass(PackRun& run_of, const plan::ForwardPass& pass, Progress& progress) {
  plan::append_forward_pass(run_of.plan, pass);
  if (const auto fault = plan::check_plan(run_of.plan, *run_of.graph)) throw Error(ErrorCode::limit, *fault);
  plan::DryMachine machine;
  run_of.timeline = plan::run(run_of.plan, machine, progress);
}

void project_load(const Context& context, PackRun& run_of, const load::LoadRequest& request,
                  const plan::ForwardPass* pass, Progress& progress) {
  const graph::MetaGraph& graph = *run_of.graph;
  const CliEnvironment environment(context, request);
  const load::BoundRequest bound = load::bind_request(graph, request, environment.load);
  const load::Method& method = *bound.methods.front();
  const load::OrderChoice& order = bound.orders.front();
  load::Projection projection =
      load::project(graph, method, order.name, load::make_order(graph, order, method, bound, progress), bound,
                    progress, pass);
  run_of.plan = std::move(projection.plan);
  run_of.timeline = std::move(projection.timeline);
  run_of.method = method.id;
  run_of.order = order.name;
  run_of.text = fmt::format("a load by {} in {} order", method.id, safe_display(order.name, 60));
}

// Names of the spaces whose blocks can be packed.
std::vector<std::string> packed_spaces() {
  std::vector<std::string> names;
  for (const plan::Space space : plan::spaces_in(plan::kHeldSpaces))
    names.emplace_back(plan::space_name(space));
  return names;
}

// Throws Error{usage} for load options without a load, and for other options that have no effect.
void check_pack_request(const load::LoadRequest& request, const LoadFlags& flags) {
  if (!request.methods.empty()) {
    const std::vector<const load::Method*> methods = load::find_methods(request.methods);
    const std::vector<std::string> orders = load::order_names(request.orders);
    if (methods.size() > 1 || orders.size() > 1)
      throw Error(ErrorCode::usage, "one load is packed: name one --method and one --order");
    load::check_order_choice(orders.front());
    return flags.require_used(request, methods);
  }
  for (const std::string_view id : flags.given()) {
    const load::LoadOption* const option = load::find_load_option(id);
    if (option->terms.supported_by != nullptr || id == "order" || id == "activations")
      throw Error(ErrorCode::usage, "{} has no effect without --method, which packs a load", flag_of(id));
  }
}

// Opens the model and projects the run. Throws Error{usage}, and Error{unsupported} if no load is requested
// and the model's operators are unknown.
PackRun pack_run(const Context& context, const std::string& path, const load::LoadRequest& request,
                 const std::string& space, Progress& progress) {
  PackRun result;
  result.space = space_of(space);
  result.graph = open_for(context, path, request);
  const bool load = !request.methods.empty();
  const auto forward = find_pass(context, *result.graph, path, request);
  const plan::ForwardPass* const pass = forward->pass();
  if (load)
    project_load(context, result, request, pass, progress);
  else
    project_pass(result, *pass, progress);
  if (pass != nullptr) {
    result.forward = forward;
    result.text += (load ? ", then " : "") + pass_text(*forward);
    result.notes = forward->notes();
    for (std::string& note : size_notes(*forward)) result.notes.push_back(std::move(note));
    if (forward->unknown_values() > 0)
      result.notes.push_back(
          fmt::format("{} of unknown size left out", counted(forward->unknown_values(), "value")));
  } else if (request.sequence > 0) {
    result.notes.push_back("the operators are unknown: the forward pass is left out");
  }
  return result;
}

// --- Makes packing problems from files and runs.

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

// Lists spaces: "device 549 blocks, host 3 blocks".
std::string spaces_with_blocks(const PackRun& run) {
  std::string text;
  for (const plan::Space space : plan::kSpaceOrder) {
    const auto count = std::ranges::count_if(
        run.plan.blocks, [&](const plan::Block& block) { return block.space == space && block.bytes > 0; });
    if (count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", plan::space_title(space),
                          counted(static_cast<std::uint64_t>(count), "block"));
  }
  return text.empty() ? "no blocks anywhere" : text;
}

// The labels of the blocks; of equal labels the second gets " #2", and so on.
std::vector<std::string> unique_labels(const PackRun& run, const std::vector<plan::BlockId>& blocks) {
  const auto owners = graph::first_owner(*run.graph);
  std::vector<std::string> labels;
  std::unordered_set<std::string> taken;
  for (const plan::BlockId id : blocks) {
    labels.push_back(safe_display(plan::block_label(run.plan.block(id), *run.graph, owners)));
    taken.insert(labels.back());
  }
  std::unordered_map<std::string, std::uint64_t> seen;
  for (std::string& label : labels) {
    std::uint64_t& count = seen[label];
    if (++count == 1) continue;
    std::string other;
    do {
      other = fmt::format("{} #{}", label, count++);
    } while (!taken.insert(other).second);
    --count;
    label = std::move(other);
  }
  return labels;
}

std::uint64_t& sum_of(BytesByUse& bytes, const plan::Block& block) {
  if (block.use == plan::BlockUse::storage) return bytes.weights;
  if (block.use == plan::BlockUse::ring_slot) return bytes.ring_slots;
  if (block.use == plan::BlockUse::value) return bytes.values;
  return block.storage ? bytes.weight_copies : bytes.temporaries;
}

void add_bytes(BytesByUse& bytes, const plan::Block& block) {
  const auto together = checked_add(bytes.sum(), block.bytes);
  if (!together || *together > kMostBytes)
    throw Error(ErrorCode::limit, "the blocks of the run take more than 2^62 bytes together");
  sum_of(bytes, block) += block.bytes;
}

// The buffers of a file, each additionally aligned to `alignment`. Throws Error{io, malformed}, and
// Error{limit} if the two alignments of a buffer have no common multiple below 2^62.
packing::Problem file_problem(const std::string& path, std::uint64_t alignment) {
  packing::Problem problem = plan::read_packing_file(path);
  // combines each buffer's own alignment with --align
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    packing::Buffer& buffer = problem.buffers[i];
    const auto both = checked_mul(buffer.alignment / std::gcd(buffer.alignment, alignment), alignment);
    if (!both || *both > kMostBytes)
      throw Error(ErrorCode::limit, {.file = path},
                  "buffer '{}': alignment {} and --align {} have no common multiple below 2^62",
                  safe_display(problem.id_of(i)), buffer.alignment, alignment);
    buffer.alignment = *both;
  }
  return problem;
}

// The blocks of the run's space, at multiples of `alignment`. Throws Error{usage} if the space has no blocks
// (the message names spaces that have some), Error{limit} for sizes over 2^62 bytes. `rule` ends the
// comparison with the greedy planner.
RunProblem run_problem(const PackRun& run, std::uint64_t alignment, const packing::StopRule& rule) {
  plan::SpaceProblem space = plan::space_problem(run.plan, run.timeline, run.space, alignment);
  if (space.blocks.empty())
    throw Error(ErrorCode::usage, "--space {}: {} has no blocks there, but {}", plan::space_name(run.space),
                run.text, spaces_with_blocks(run));
  RunProblem result;
  for (const plan::BlockId id : space.blocks) add_bytes(result.bytes, run.plan.block(id));
  space.problem.ids = unique_labels(run, space.blocks);
  result.problem = std::move(space.problem);
  result.alive = run.timeline.peaks[plan::index(run.space)].bytes;
  result.greedy = packing::greedy_by_size_height(result.problem, rule);
  return result;
}

}  // namespace

// --- loadline pack: finds offsets in an arena for buffers with lifetimes, from a file or from a model's run.

namespace {

constexpr std::uint64_t kRunAlignment = 256;

struct PackFlags {
  std::string space = "device";
  std::vector<std::string> capacity;
  packing::PackOptions search;  // without the capacity and the time limit
  double seconds = 10;
  std::string alignment;
  std::string out;
  bool force = false;
};

packing::PackOptions pack_options(const PackFlags& options) {
  packing::PackOptions result = options.search;
  for (const std::string& bytes : options.capacity)
    result.capacity.emplace_back(parse_size(bytes, "--capacity"));
  result.seconds = options.seconds;
  return result;
}

std::optional<std::uint64_t> alignment_of(const PackFlags& options) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  if (options.alignment.empty()) return std::nullopt;
  const std::uint64_t alignment = parse_size(options.alignment, "--align");
  if (alignment == 0 || alignment > kMost)
    throw Error(ErrorCode::usage, "--align: {} is not in 1 to {}", alignment, kMost);
  return alignment;
}

bool is_csv(const std::string& path) {
  return lower_case(std::filesystem::path(path).extension().string()) == ".csv";
}

void check_capacity(const PackFlags& options, const packing::Problem& problem) {
  const std::size_t arenas = packing::arena_count(problem);
  if (options.capacity.size() > arenas)
    throw Error(ErrorCode::usage, "--capacity: {} for {}", counted(options.capacity.size(), "value"),
                counted(arenas, "arena"));
}

// Time limit for the comparison with the greedy planner: as long as the packing may take.
packing::StopRule stop_rule(const Context& context, const PackFlags& options) {
  using std::chrono::steady_clock;
  packing::StopRule rule;
  rule.stop = context.stop;
  rule.deadline = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                            std::chrono::duration<double>(options.seconds));
  return rule;
}

// Checked before the search, which may take long.
void check_out(const PackFlags& options) {
  std::error_code ignored;
  if (!options.out.empty() && !options.force && std::filesystem::exists(options.out, ignored))
    throw Error(ErrorCode::usage, {.file = options.out}, "exists; --force replaces it");
}

// A wrong packing would make a program overwrite its own data: throws before anything is printed or written.
void require_sound(const PackAnswer& answer) {
  if (const auto fault = packing::packing_fault(answer.problem, answer.packing, answer.asked.capacity))
    throw Error(ErrorCode::malformed, "internal error, please report it: the packing is wrong: " + *fault);
}

// Fills in the packing of `answer`.
int solve(const Context& context, const PackFlags& options, Progress& progress, PackAnswer answer) {
  check_capacity(options, answer.problem);
  answer.asked = pack_options(options);
  answer.asked_out = options.out;
  answer.packing = packing::pack(answer.problem, answer.asked, progress);
  require_sound(answer);
  const packing::Packing& packing = answer.packing;
  const bool fits = packing.verdict == packing::Verdict::feasible;
  if (!options.out.empty() && fits) {
    report::write_file(options.out, packing::packing_csv(answer.problem, packing.offsets), options.force);
    answer.out = options.out;
  }
  if (context.json)
    print_json(packing_json(answer));
  else
    fmt::print("{}", packing_text(answer));
  if (packing.verdict == packing::Verdict::infeasible) return kNoFit;
  return fits ? kDone : kFailed;
}

int pack_file(const Context& context, const PackFlags& options, const LoadFlags& flags, bool space_given) {
  std::vector<std::string_view> given = flags.given();
  if (space_given) given.push_back("space");
  if (!given.empty())
    throw Error(ErrorCode::usage, "{} needs a model: {} is a list of buffers", flag_of(given.front()),
                safe_display(flags.path(), 80));
  check_out(options);
  const packing::Problem problem = file_problem(flags.path(), alignment_of(options).value_or(1));
  Progress progress(context.stop);
  return solve(context, options, progress, {.problem = problem});
}

int pack_model(const Context& context, const PackFlags& options, const LoadFlags& flags,
               const load::LoadRequest& request) {
  check_pack_request(request, flags);
  check_out(options);
  Progress progress(context.stop);
  const PackRun run = pack_run(context, flags.path(), request, options.space, progress);
  const std::uint64_t alignment = alignment_of(options).value_or(kRunAlignment);
  const RunProblem of_run = run_problem(run, alignment, stop_rule(context, options));
  return solve(context, options, progress,
               {.problem = of_run.problem, .run = &run, .of_run = &of_run, .alignment = alignment});
}

void add_solver_options(CLI::App& app, PackFlags& options) {
  begin_group(app, "Packing");
  add_list(app, "--capacity", options.capacity, "arena size; of several, each in turn",
           {.value_name = "SIZE,...", .separator = ','});
  add_flag(app, "--minimize", options.search.minimize, "find the least height, and try to prove it");
  add_number(app, "--time-limit", options.seconds, "seconds that the search may take",
             {.value_name = "S", .show_default = true, .check = number_range(0, 1e6)});
  add_number(app, "--threads", options.search.threads, "parallel exact searches",
             {.value_name = "N", .show_default = true, .check = whole_range(1, 64)});
  add_number(app, "--seed", options.search.seed, "seed of the random search",
             {.value_name = "N", .show_default = true, .check = whole_range(0, kMostNumber)});
  add_text(app, "--align", options.alignment, "every offset is a multiple of it",
           {.value_name = "SIZE", .default_text = "1; 256 for a model"});
  add_text(app, "--space", options.space, "of a model: device, host or staging",
           {.value_name = "ID", .show_default = true, .check = one_of(packed_spaces())});
  const auto fault = [](const std::string& path) { return path.empty() ? "a file name is needed" : ""; };
  add_text(app, "-o,--out", options.out, "write the buffers with their offsets as CSV",
           {.value_name = "OUT.csv", .check = {.fault = fault}});
  add_flag(app, "--force", options.force, "replace an existing output");
}

}  // namespace

Action setup_pack(CLI::App& app) {
  auto options = std::make_shared<PackFlags>();
  auto flags = std::make_shared<LoadFlags>(app, load::LoadUser::pack);
  add_solver_options(app, *options);
  return [options, flags, &app](Context& context) {
    const load::LoadRequest request = flags->request(context.quiet);
    return is_csv(flags->path()) ? pack_file(context, *options, *flags, was_given(app, "--space"))
                                 : pack_model(context, *options, *flags, request);
  };
}

}  // namespace loadline::cli
