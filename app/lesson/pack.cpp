// Packs the device blocks of a load and the pass behind it.
#include "core/packing/pack.h"

#include "app/lesson/runs.h"
#include "core/base/text.h"
#include "core/load/answer/answer.h"
#include "core/load/answer/projection.h"
#include "core/packing/greedy_by_size.h"
#include "core/plan/space_problem.h"

#include <fmt/format.h>

namespace loadline::lesson {

RunResult run_pack(const RunCall& call) {
  const WrittenModel model(call.text("model", "demo"), true, call);
  const MetaGraph& graph = *model.graph();
  LoadRequest request;
  request.methods = {call.text("method", "staged_ring")};
  request.sequence = call.number("sequence", 64, 1 << 16);
  const BoundRequest bound = bind_request(graph, request, call.environment);
  const RequestPass pass(graph, request, call.environment.assets);
  const Projection projection =
      project(graph, *bound.methods.at(0), find_order("file"), bound.inputs, call.progress, pass.pass());
  const SpaceProblem space = space_problem(projection.plan, projection.timeline, Space::device);
  std::uint64_t sum = 0;
  for (const Buffer& buffer : space.problem.buffers) sum += buffer.size;
  PackOptions options;
  options.minimize = true;
  constexpr double kSeconds = 5;
  options.seconds = kSeconds;
  const Packing packing = pack(space.problem, options, call.progress);
  const std::uint64_t greedy = greedy_by_size_height(space.problem).value_or(0);
  RunResult result;
  result.figures = {{"buffers", run_bytes(space.problem.buffers.size())},
                    {"sum", run_bytes(sum)},
                    {"greedy", run_bytes(greedy)},
                    {"packed", run_bytes(packing.height())},
                    {"bound", run_bytes(packing.lower_bound())},
                    {"proven", Datum(std::int64_t{packing.proven_optimal()})},
                    {"seconds", Datum(packing.seconds)}};
  result.lines = {
      run_line("buffers", format_grouped(space.problem.buffers.size())),
      run_line("each with memory of its own", format_bytes(sum)),
      run_line("greedy, the largest first", format_bytes(greedy), "as TensorFlow Lite plans"),
      run_line("packed", format_bytes(packing.height()),
               fmt::format("{}, {}", packing.proven_optimal() ? "proven: no packing is lower" : "not proven",
                           format_seconds(packing.seconds))),
      run_line("alive at once, at most", format_bytes(packing.lower_bound()), "no packing is lower")};
  return result;
}

}  // namespace loadline::lesson
