// The table of options of reading files: one row for each member of FileReads.
#include "core/load/read_options.h"

#include "core/base/lookup.h"
#include "core/base/option_members.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {
namespace {

constexpr std::string_view kReadGroup = "GPU";
constexpr std::uint64_t kMostReaders = 64;

struct ReadingRow {
  std::string_view id;
  FileReading reading;
};
constexpr std::array<ReadingRow, 3> kReadings = {
    {{"cache", FileReading::cached}, {"direct", FileReading::direct}, {"cold", FileReading::cold}}};

std::vector<std::string> reading_words() {
  std::vector<std::string> words;
  for (const ReadingRow& row : kReadings) words.emplace_back(row.id);
  return words;
}
std::vector<std::string> reader_words() { return {"1", "2", "4", "8", "16", "32", "64"}; }

constexpr std::array<Option<FileReads>, 2> kReadOptions = {{
    {.id = "readers",
     .group = kReadGroup,
     .kind = OptionKind::count,
     .title = "Readers",
     .value_name = "N",
     .brief = "threads that read the files",
     .help = "Threads that read the files.",
     .default_text = "the free cores",
     .choices = reader_words,
     .access = access::number_or_none<&FileReads::threads>,
     .least = 1,
     .most = kMostReaders},
    {.id = "reading",
     .group = kReadGroup,
     .kind = OptionKind::choice,
     .title = "Reading",
     .value_name = "cache|direct|cold",
     .brief = "through the page cache, or past it",
     .help = "How files are read: through the page cache (cache), past it (direct), or past it for files of "
             "which the cache holds less than half (cold).",
     .default_text = "cache",
     .choices = reading_words,
     .access = {[](const FileReads& reads) {
                  return OptionValue(
                      std::string(std::ranges::find(kReadings, reads.reading, &ReadingRow::reading)->id));
                },
                [](FileReads& reads, const OptionValue& value) {
                  reads.reading = find_row(std::span<const ReadingRow>(kReadings),
                                           std::get<std::string>(value), "way of reading")
                                      .reading;
                }}},
}};

}  // namespace

std::span<const Option<FileReads>> read_options() { return kReadOptions; }

void set_read_option(FileReads& reads, std::string_view id, std::string_view word) {
  const Option<FileReads>* const row = find_option(read_options(), id);
  assert(row != nullptr);
  set_option(*row, reads, word);
}

}  // namespace loadline
