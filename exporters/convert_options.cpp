// The table of conversion options, one row each.
#include "exporters/convert_options.h"

#include "core/base/option_members.h"

#include <array>

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

constexpr std::string_view kFormat = "Format";
constexpr std::string_view kWriting = "Writing";

constexpr std::array<Option<Request>, 8> kOptions = {{
    {.id = "to",
     .group = kFormat,
     .kind = OptionKind::choice,
     .title = "Format",
     .value_name = "ID",
     .brief = "output format: safetensors, gguf, torch or npz",
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
     .brief = "safetensors folder of files of at most SIZE",
     .help = "Splits a safetensors folder into files of at most SIZE; a larger tensor has a file of its own.",
     .default_text = "one file",
     .access = access::number_or_none<&Request::layout, &ExportOptions::max_shard_bytes>,
     .least = 1},
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
     .help = "Memory that buffers may take.",
     .default_text = "64MiB",
     .access = access::number<&Request::write, &WriteOptions::memory_budget>,
     .least = 128 << 10},
    {.id = "force",
     .group = kWriting,
     .kind = OptionKind::flag,
     .title = "Replace files",
     .brief = "replace existing output",
     .help = "Replaces output that exists.",
     .access = access::flag<&Request::write, &WriteOptions::overwrite>},
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

}  // namespace loadline
