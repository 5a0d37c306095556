// Reads the whole file at once and frees the text once the buffers exist.
#include "core/plan/packing_file.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/source_file.h"
#include "core/packing/csv.h"

namespace loadline {

Problem read_packing_file(const std::string& path) {
  constexpr std::uint64_t kMostFile = std::uint64_t{1} << 30;
  const SourceFile file = SourceFile::open(path);
  if (file.size() > kMostFile)
    throw Error(ErrorCode::limit, {.file = path}, "{} is over the limit of {}", format_bytes(file.size()),
                format_bytes(kMostFile));
  Problem problem = read_packing_csv(file.head(file.size()), path);
  check_problem(problem);
  return problem;
}

}  // namespace loadline
