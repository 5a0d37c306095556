// Figures and their goals.
#include "core/base/text.h"
#include "tests/gpu_report/report.h"

#include <algorithm>

#include <fmt/format.h>

namespace loadline::bench {
namespace {

// Goals are for models of `least` bytes and more.
void judge(Judged& one, std::uint64_t bytes, std::uint64_t least, bool met) {
  if (bytes < least)
    one.not_judged = fmt::format("The goal is for models of {} and more.", format_bytes(least));
  else
    one.met = met;
}

// The best upload of a table over its ceiling or its baseline.
Judged rate_judged(const UploadFigures& uploads, const RateTable& table, RowUse against, std::string id,
                   std::string what) {
  Judged one{.id = std::move(id), .what = std::move(what)};
  const RateFigure* const ours = table.best(RowUse::upload);
  const RateFigure* const most = table.best(against);
  if (ours == nullptr || most == nullptr) return one;
  one.value = table.rate(*ours) / table.rate(*most);
  one.figure = fmt::format("{:.2f}", *one.value);
  one.about = fmt::format("{}: {}. {}: {}.", ours->times.name, format_rate(table.rate(*ours)),
                          most->times.name, format_rate(table.rate(*most)));
  if (against != RowUse::ceiling) return one;
  one.goal = fmt::format("{:.1f}", kRateGoal);
  if (uploads.software())
    one.not_judged = "A software GPU's memory must come from the system page by page.";
  else
    judge(one, uploads.bytes, kSizeGoal, *one.value >= kRateGoal);
  return one;
}

Judged methods_judged(const UploadFigures& uploads) {
  const auto run = [](const MethodFigure& method) { return method.refusal.empty(); };
  const auto all = std::ranges::count_if(uploads.methods, run);
  const auto good = std::ranges::count_if(uploads.methods, &MethodFigure::agrees);
  Judged one{.id = "methods",
             .what = "methods as projected",
             .figure = fmt::format("{} of {}", good, all),
             .about =
                 "Each measured peak is within 2 % or 16 MiB of its projection: on the device, in staging "
                 "memory, in RssAnon.",
             .goal = fmt::format("all, and at least {}", kMethodsGoal),
             .value = static_cast<double>(good)};
  judge(one, uploads.method_bytes, kMemorySizeGoal,
        good == all && static_cast<std::size_t>(all) >= kMethodsGoal);
  return one;
}

Judged held_judged(const UploadFigures& uploads) {
  double most = 0;
  for (const RingFigure& ring : uploads.rings) most = std::max(most, ring.over(uploads.bytes));
  Judged one{.id = "held_over_weights",
             .what = "memory held, over the weights",
             .figure = fmt::format("{:.3f}", most),
             .about = fmt::format("The most of {}, the ring taken off. Counted by {}.",
                                  counted(uploads.rings.size(), "ring"), uploads.held_by),
             .goal = fmt::format("at most {:.2f}", kHeldGoal),
             .value = most};
  judge(one, uploads.bytes, kMemorySizeGoal, most <= kHeldGoal);
  return one;
}

Judged tests_judged(const std::vector<TestRun>& runs) {
  std::uint64_t passed = 0, failed = 0, skipped = 0;
  for (const TestRun& run : runs) {
    passed += run.passed;
    failed += run.failed.size();
    skipped += run.skipped.size();
  }
  return {.id = "tests",
          .what = "GPU tests passed",
          .figure = fmt::format("{} of {}", passed, passed + failed),
          .about = fmt::format("On {}. {} skipped.", counted(runs.size(), "device"),
                               skipped == 0 ? "None" : counted(skipped, "test")),
          .goal = "all",
          .value = static_cast<double>(passed),
          .met = failed == 0 && passed > 0};
}

Judged torch_judged(const TorchFigures& torch, const RateTable& warm) {
  Judged one{.id = "torch", .what = "times as fast as torch"};
  const RateFigure* const ours = warm.best(RowUse::upload);
  if (ours == nullptr || !torch.warm) return one;
  one.value = torch.warm->median / ours->times.median;
  one.figure = fmt::format("{:.2f}", *one.value);
  one.about = fmt::format("{}: {}. load_file: {}. Both with the file in the page cache.", ours->times.name,
                          format_rate(warm.rate(*ours)),
                          format_rate(static_cast<double>(torch.bytes) / torch.warm->median));
  return one;
}

}  // namespace

bool GpuReport::sound() const {
  const bool passed = std::ranges::all_of(tests, [](const TestRun& run) { return run.failed.empty(); });
  return passed && (!uploads || std::ranges::none_of(uploads->methods, [](const MethodFigure& method) {
           return method.verified == false;
         }));
}

std::vector<Judged> judged(const GpuReport& report) {
  std::vector<Judged> list;
  if (!report.tests.empty()) list.push_back(tests_judged(report.tests));
  if (!report.uploads) return list;
  const UploadFigures& uploads = *report.uploads;
  if (const RateTable* const warm = uploads.table("warm")) {
    if (uploads.software())
      list.push_back(rate_judged(uploads, *warm, RowUse::baseline, "warm_over_memcpy", "of memcpy, warm"));
    else
      list.push_back(rate_judged(uploads, *warm, RowUse::ceiling, "warm_over_link", "of the link, warm"));
  }
  if (const RateTable* const cold = uploads.table("cold"))
    list.push_back(rate_judged(uploads, *cold, RowUse::ceiling, "cold_over_read", "of a raw read, cold"));
  if (!uploads.methods.empty()) list.push_back(methods_judged(uploads));
  if (!uploads.rings.empty()) list.push_back(held_judged(uploads));
  if (const RateTable* const warm = uploads.table("warm");
      warm != nullptr && report.torch && report.torch->warm)
    list.push_back(torch_judged(*report.torch, *warm));
  std::erase_if(list, [](const Judged& one) { return !one.value; });
  return list;
}

}  // namespace loadline::bench
