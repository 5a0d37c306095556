// A row for each scheduler: the variables for rank, first rank and number of ranks.
#include "app/cli/convert/ranks.h"

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/base/text.h"

#include <array>

namespace loadline::cli {
namespace {

struct Scheduler {
  const char* rank;
  const char* size;
  const char* first;  // null: ranks begin at 0
};

// The task of a job array comes first: each task of an array has a SLURM_PROCID of its own, which is 0. MPI
// comes before Slurm's tasks: mpirun inside a Slurm job starts more processes than Slurm knows.
constexpr std::array<Scheduler, 4> kSchedulers = {{
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
    {"PMI_RANK", "PMI_SIZE", nullptr},
    {"SLURM_PROCID", "SLURM_NTASKS", nullptr},
}};

}  // namespace

WriteShare share_from_environment(const std::function<std::string(const char*)>& variable) {
  const auto number = [&](const char* name) {
    const std::string text = variable(name);
    const auto value = text_as<std::uint32_t>(text);
    if (!value) throw Error(ErrorCode::usage, "{} is '{}', which is no number", name, safe_display(text, 40));
    return *value;
  };
  for (const Scheduler& scheduler : kSchedulers) {
    if (variable(scheduler.rank).empty()) continue;
    const std::uint32_t first = scheduler.first == nullptr ? 0 : number(scheduler.first);
    const WriteShare share{number(scheduler.rank) - first, number(scheduler.size)};
    if (share.index >= share.count)
      throw Error(ErrorCode::usage, "{} is {}, {} is {}: ranks must lie close together", scheduler.rank,
                  share.index + first, scheduler.size, share.count);
    return share;
  }
  throw Error(ErrorCode::usage,
              "this process was not started by Slurm or MPI: give its part as a number, such as 1/4");
}

}  // namespace loadline::cli
