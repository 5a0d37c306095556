// The table of options of reading files: one row for each member of FileReads.
#include "core/load/read_options.h"

#include "core/base/option_members.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <vector>

namespace loadline {
namespace {

constexpr std::string_view kReadGroup = "GPU";
constexpr std::uint64_t kMostReaders = 64;

// In the order of FileReading.
std::vector<std::string> reading_words() { return {"cache", "direct", "cold"}; }
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
                  return OptionValue(reading_words()[static_cast<std::size_t>(reads.reading)]);
                },
                [](FileReads& reads, const OptionValue& value) {
                  const std::vector<std::string> words = reading_words();
                  const auto word = std::ranges::find(words, std::get<std::string>(value));
                  reads.reading = static_cast<FileReading>(word - words.begin());
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
