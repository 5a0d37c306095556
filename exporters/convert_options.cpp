// The table: one row for each thing that can be chosen about a conversion.
#include "exporters/convert_options.h"

#include <algorithm>
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

OptionValue outtype_of(const Request& request) {
  if (!request.layout.outtype) return {};
  return std::string(*request.layout.outtype == DType::f32   ? "f32"
                     : *request.layout.outtype == DType::f16 ? "f16"
                                                             : "bf16");
}
void set_outtype(Request& request, const OptionValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  if (text == nullptr)
    request.layout.outtype.reset();
  else
    request.layout.outtype = *text == "f32" ? DType::f32 : *text == "f16" ? DType::f16 : DType::bf16;
}

OptionValue number_or_none(std::uint64_t number) { return number == 0 ? OptionValue() : OptionValue(number); }
std::uint64_t number_in(const OptionValue& value) {
  const auto* const number = std::get_if<std::uint64_t>(&value);
  return number == nullptr ? 0 : *number;
}

constexpr std::string_view kFormat = "Format";
constexpr std::string_view kWriting = "Writing";

constexpr std::array<Option<Request>, 7> kOptions = {{
    {.id = "to",
     .group = kFormat,
     .kind = OptionKind::choice,
     .title = "Format",
     .value_name = "ID",
     .brief = "output format: safetensors or gguf",
     .help = "Output format.",
     .default_text = "by OUT's name",
     .choices = exporter_ids,
     .get = [](const Request& r) { return r.to.empty() ? OptionValue() : OptionValue(r.to); },
     .set =
         [](Request& r, const OptionValue& value) {
           const auto* const text = std::get_if<std::string>(&value);
           r.to = text == nullptr ? std::string() : *text;
         },
     .can_be_unset = true},
    {.id = "outtype",
     .group = kFormat,
     .kind = OptionKind::choice,
     .title = "Type",
     .value_name = "TYPE",
     .brief = "cast floating point tensors: f32, f16 or bf16",
     .help = "Type that floating point tensors are cast to.",
     .default_text = "as stored",
     .choices = outtypes,
     .get = outtype_of,
     .set = set_outtype,
     .can_be_unset = true},
    {.id = "align",
     .group = kFormat,
     .kind = OptionKind::bytes,
     .title = "Alignment",
     .value_name = "N",
     .brief = "align the data (gguf: every tensor) to N bytes",
     .help =
         "Alignment, a power of two: of the whole data in safetensors files, of every tensor in GGUF files.",
     .default_text = "the format's own",
     .get = [](const Request& r) { return number_or_none(r.layout.alignment); },
     .set = [](Request& r, const OptionValue& value) { r.layout.alignment = number_in(value); },
     .least = 1,
     .most = std::uint64_t{2} << 20,
     .can_be_unset = true},
    {.id = "max_shard_size",
     .group = kFormat,
     .kind = OptionKind::bytes,
     .title = "Shard size",
     .value_name = "SIZE",
     .brief = "safetensors folder of files of at most SIZE",
     .help = "Splits a safetensors folder into files of at most SIZE; a larger tensor has a file of its own.",
     .default_text = "one file",
     .get = [](const Request& r) { return number_or_none(r.layout.max_shard_bytes); },
     .set = [](Request& r, const OptionValue& value) { r.layout.max_shard_bytes = number_in(value); },
     .least = 1,
     .can_be_unset = true},
    {.id = "memory_budget",
     .group = kWriting,
     .kind = OptionKind::bytes,
     .title = "Memory budget",
     .value_name = "SIZE",
     .brief = "memory for buffers",
     .help = "Memory that buffers may take.",
     .default_text = "64MiB",
     .get = [](const Request& r) { return OptionValue(r.write.memory_budget); },
     .set = [](Request& r, const OptionValue& value) { r.write.memory_budget = number_in(value); },
     .least = 128 << 10},
    {.id = "force",
     .group = kWriting,
     .kind = OptionKind::flag,
     .title = "Replace files",
     .brief = "replace existing output",
     .help = "Replaces output that exists.",
     .get = [](const Request& r) { return OptionValue(r.write.overwrite); },
     .set = [](Request& r, const OptionValue& value) { r.write.overwrite = std::get<bool>(value); }},
    {.id = "verify",
     .group = kWriting,
     .kind = OptionKind::flag,
     .title = "Verify",
     .brief = "read the output back before it appears",
     .help = "Reads every file back from disk and compares it before it appears.",
     .get = [](const Request& r) { return OptionValue(r.write.verify); },
     .set = [](Request& r, const OptionValue& value) { r.write.verify = std::get<bool>(value); }},
}};

}  // namespace

std::span<const Option<ConvertRequest>> convert_options() { return kOptions; }

const Option<ConvertRequest>* find_convert_option(std::string_view id) {
  const auto found =
      std::find_if(kOptions.begin(), kOptions.end(), [&](const auto& row) { return row.id == id; });
  return found == kOptions.end() ? nullptr : &*found;
}

}  // namespace loadline
