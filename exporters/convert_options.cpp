// The table of conversion options, one row each.
#include "exporters/convert_options.h"

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/base/option_members.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace loadline {
namespace {

using Request = ConvertRequest;

std::vector<std::string> exporter_ids() {
  std::vector<std::string> ids;
  for (const Exporter& exporter : exporters()) ids.emplace_back(exporter.id);
  return ids;
}
std::vector<std::string> outtypes() { return {"f32", "f16", "bf16"}; }
DType parse_outtype(const std::string& word) {
  check_option_choice(word, outtypes());
  return *dtype_named(word);
}

std::vector<std::string> name_choices() { return {"keep", "map"}; }
bool parse_names(const std::string& word) {
  check_option_choice(word, name_choices());
  return word == "map";
}
std::string names_word(bool maps) { return maps ? "map" : "keep"; }

WriteShare parse_share(const std::string& word) {
  if (word == "auto") return {0, 0};
  const std::size_t slash = word.find('/');
  const auto part = text_as<std::uint32_t>(std::string_view(word).substr(0, slash));
  const auto count = slash == std::string::npos
                         ? std::nullopt
                         : text_as<std::uint32_t>(std::string_view(word).substr(slash + 1));
  constexpr std::uint32_t kMostParts = 100'000;
  if (!part || !count || *part < 1 || *part > *count || *count > kMostParts)
    throw Error(ErrorCode::usage, "a part of '{}': write I/N with I from 1 to N, such as 1/4, or auto",
                safe_display(word, 40));
  return {*part - 1, *count};
}
std::string print_share(const WriteShare& share) {
  return share.count == 0 ? "auto" : fmt::format("{}/{}", share.index + 1, share.count);
}

constexpr std::string_view kFormat = "Format";
constexpr std::string_view kWriting = "Writing";

constexpr std::array<Option<Request>, 17> kOptions = {{
    {.id = "to",
     .group = kFormat,
     .kind = OptionKind::choice,
     .title = "Format",
     .value_name = "ID",
     .brief = "output format: one of `loadline formats`",
     .help = "Output format.",
     .default_text = "by OUT's name",
     .choices = exporter_ids,
     .access = access::text<&Request::to>},
    {.id = "outtype",
     .group = kFormat,
     .kind = OptionKind::choice,
     .title = "Type",
     .value_name = "TYPE",
     .brief = "cast floating point tensors: f32, f16 or bf16",
     .help = "Type that floating point tensors are cast to.",
     .default_text = "as stored",
     .choices = outtypes,
     .access = access::word<parse_outtype, dtype_word, &Request::layout, &ExportOptions::outtype>},
    {.id = "names",
     .group = kFormat,
     .kind = OptionKind::choice,
     .title = "Names",
     .value_name = "WHICH",
     .brief = "gguf: keep the model's names, or map to llama.cpp's",
     .help = "Names of tensors in a GGUF file: keep those of the model, or map them, with keys and forms, to "
             "what llama.cpp runs.",
     .default_text = "keep",
     .choices = name_choices,
     .access = access::word<parse_names, names_word, &Request::layout, &ExportOptions::map_names>},
    {.id = "align",
     .group = kFormat,
     .kind = OptionKind::bytes,
     .title = "Alignment",
     .value_name = "N",
     .brief = "align the data (gguf: every tensor) to N bytes",
     .help =
         "Alignment, a power of two: of the whole data in safetensors files, of every tensor in GGUF files.",
     .default_text = "the format's own",
     .access = access::number_or_none<&Request::layout, &ExportOptions::alignment>,
     .least = 1,
     .most = std::uint64_t{2} << 20},
    {.id = "max_shard_size",
     .group = kFormat,
     .kind = OptionKind::bytes,
     .title = "Shard size",
     .value_name = "SIZE",
     .brief = "split safetensors or gguf into files of SIZE",
     .help =
         "Splits a safetensors folder or a GGUF file into files of at most SIZE; a larger tensor has a file "
         "of its own.",
     .default_text = "one file",
     .access = access::number_or_none<&Request::layout, &ExportOptions::max_shard_bytes>,
     .least = 1},
    {.id = "order",
     .group = kFormat,
     .kind = OptionKind::text,
     .title = "Order",
     .value_name = "ID|FILE",
     .brief = "order of the tensors in the file, as of plan",
     .help =
         "Order of the tensors in the file: file, name, forward, heads_first, largest, smallest, optimal, or "
         "a text file that names one tensor a line. A safetensors file has an order of its own.",
     .default_text = "as in the source",
     .access = access::text<&Request::order>},
    {.id = "inline_weights",
     .group = kFormat,
     .kind = OptionKind::flag,
     .title = "Weights inside",
     .brief = "onnx: one file, without external data",
     .help = "Writes an ONNX model as one file, without external data. Protobuf allows less than 2 GiB.",
     .access = access::flag<&Request::layout, &ExportOptions::inline_weights>},
    {.id = "metadata_slack",
     .group = kFormat,
     .kind = OptionKind::bytes,
     .title = "Metadata slack",
     .value_name = "SIZE",
     .brief = "gguf: room for later edits of the metadata",
     .help = "Room in a GGUF file that later edits of its metadata use, so that no tensor moves.",
     .default_text = "4KiB, from gguf as it is",
     .access = access::optional_number<&Request::layout, &ExportOptions::metadata_slack>,
     .most = 1 << 20},
    {.id = "link",
     .group = kFormat,
     .kind = OptionKind::flag,
     .title = "Link files",
     .brief = "hard links to tokenizer and other files",
     .help =
         "Gives the tokenizer and the other files of the model's folder a second name (a hard link) in the "
         "output folder instead of copying them.",
     .access = access::flag<&Request::layout, &ExportOptions::link_files>},
    {.id = "strict",
     .group = kFormat,
     .kind = OptionKind::flag,
     .title = "Strict",
     .brief = "fail instead of leaving anything out",
     .help = "Fails, before anything is written, where the output would leave something out.",
     .access = access::flag<&Request::layout, &ExportOptions::strict>},
    {.id = "memory_budget",
     .group = kWriting,
     .kind = OptionKind::bytes,
     .title = "Memory budget",
     .value_name = "SIZE",
     .brief = "memory for buffers",
     .help = "Memory that buffers may take. Any model is converted within it.",
     .default_text = "256MiB",
     .access = access::number<&Request::write, &WriteOptions::memory_budget>,
     .least = 32 << 20},
    {.id = "threads",
     .group = kWriting,
     .kind = OptionKind::count,
     .title = "Threads",
     .value_name = "N",
     .brief = "threads that read and convert",
     .help = "Threads that read and convert; one more waits for the disk. 0 means as many as there are "
             "processors, at most 8.",
     .default_text = "0: as many as processors",
     .access = access::number<&Request::write, &WriteOptions::threads>,
     .least = 0,
     .most = 256},
    {.id = "force",
     .group = kWriting,
     .kind = OptionKind::flag,
     .title = "Replace files",
     .brief = "replace existing output",
     .help = "Replaces output that exists.",
     .access = access::flag<&Request::write, &WriteOptions::overwrite>},
    {.id = "resume",
     .group = kWriting,
     .kind = OptionKind::flag,
     .title = "Resume",
     .brief = "continue after an interruption",
     .help = "Verifies what an interrupted conversion has written and continues it. If this run is "
             "interrupted, it "
             "leaves its files for the next one.",
     .access = access::flag<&Request::write, &WriteOptions::resume>},
    {.id = "consume",
     .group = kWriting,
     .kind = OptionKind::flag,
     .title = "Consume the source",
     .brief = "free the source's disk space while converting",
     .help = "Frees the source's disk space while converting, and removes the source's weight files at the "
             "end. A "
             "range is freed only after the bytes made of it are on the disk and have been read back.",
     .access = access::flag<&Request::write, &WriteOptions::consume>},
    {.id = "part",
     .group = kWriting,
     .kind = OptionKind::text,
     .title = "Part",
     .value_name = "I/N",
     .brief = "write part I of N, or auto (Slurm, MPI); join",
     .help = "Writes part I of N of the output's files; several processes share a folder. With auto, I and N "
             "are those "
             "of Slurm or MPI. The command join ends the conversion.",
     .default_text = "all",
     .access = access::word<parse_share, print_share, &Request::write, &WriteOptions::share>},
    {.id = "verify",
     .group = kWriting,
     .kind = OptionKind::flag,
     .title = "Verify",
     .brief = "read the output back before it appears",
     .help = "Reads every file back from disk and compares it before it appears.",
     .access = access::flag<&Request::write, &WriteOptions::verify>},
}};

}  // namespace

std::span<const Option<ConvertRequest>> convert_options() { return kOptions; }

bool takes_option(const Exporter& exporter, std::string_view id) {
  const auto lists = [&](const Exporter& row) {
    const std::vector<std::string_view> ids = split(row.options, ',');
    return std::ranges::find(ids, id) != ids.end();
  };
  return lists(exporter) || std::ranges::none_of(exporters(), lists);
}

void check_options_taken(const Exporter& exporter, const ExportOptions& options) {
  const Request unset;
  Request asked;
  asked.layout = options;
  if (!options.order.empty()) asked.order = "given";
  for (const auto& option : kOptions) {
    if (takes_option(exporter, option.id) || same_option(option, asked, unset)) continue;
    std::string others;
    for (const Exporter& row : exporters())
      if (takes_option(row, option.id)) others += (others.empty() ? "" : ", ") + std::string(row.id);
    throw Error(ErrorCode::usage, "{}: not an option of {}, but of {}", option.title, exporter.id, others);
  }
}

}  // namespace loadline
