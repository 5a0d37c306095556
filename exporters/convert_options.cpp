// The table of conversion options, one row each.
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/convert/numbers/quantize.h"
#include "core/forward/gguf/type_policy.h"
#include "core/graph/names/tensor_names.h"
#include "exporters/convert.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include <fmt/core.h>

namespace loadline::exporters {
namespace {

using Request = ConvertRequest;

// Types as lists show them, "Q8_0", are taken too.
std::string type_word(std::string_view word) { return lower_case(graph::spelled_dtype(word)); }

std::vector<std::string> exporter_ids() {
  std::vector<std::string> ids;
  for (const Exporter& exporter : exporters()) ids.emplace_back(exporter.id);
  return ids;
}
std::vector<std::string> float_types() { return {"f32", "f16", "bf16"}; }
std::vector<std::string> outtypes() {
  std::vector<std::string> words = float_types();
  std::ranges::move(forward::type_policy_names(forward::built_in_type_policies()), std::back_inserter(words));
  return words;
}
TypeRule parse_type_rule(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(ErrorCode::usage, "'{}': write FILTER=TYPE, such as attn_v=q8_0", safe_display(text, 60));
  const std::string word = type_word(text.substr(equals + 1));
  std::vector<std::string> types = float_types();
  for (const graph::DTypeInfo& row : graph::dtype_table())
    if (convert::can_quantize(row.id)) types.push_back(graph::dtype_word(row.id));
  check_option_choice(word, types);
  TypeRule rule{text.substr(0, equals), *graph::dtype_named(word)};
  if (graph::TensorFilter(rule.filter).empty())
    throw Error(ErrorCode::usage, "'{}': its filter is empty", safe_display(text, 60));
  return rule;
}
std::string print_type_rule(const TypeRule& rule) { return rule.filter + "=" + graph::dtype_word(rule.type); }

std::string same_word(const std::string& word) { return word; }

std::vector<std::string> name_choices() { return {"auto", "keep"}; }
bool parse_names(const std::string& word) {
  check_option_choice(word, name_choices());
  return word == "keep";
}
std::string names_word(bool keeps) { return keeps ? "keep" : "auto"; }

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

constexpr std::array<Option<Request>, 21> kOptions = {{
    {.id = "to",
     .group = kFormat,
     .kind = OptionKind::choice,
     .title = "Format",
     .value_name = "ID",
     .brief = "output format: one of `loadline formats`",
     .help = "Output format.",
     .default_text = "from the name of the output",
     .choices = exporter_ids,
     .access = access::text<&Request::to>},
    {.id = "outtype",
     .group = kFormat,
     .kind = OptionKind::choice,
     .title = "Type",
     .value_name = "TYPE",
     .brief = "f32, f16, bf16; gguf: q8_0, q4_k_m and others",
     .help = "Type that weights are written in: f32, f16 or bf16 for every format. Weights of a GGUF file "
             "can also be quantized: the other words choose a type for each of its tensors"
             ", as llama.cpp does.",
     .default_text = "as stored",
     .choices = outtypes,
     .access = access::text<&Request::outtype>,
     .spelled = type_word},
    {.id = "type",
     .group = kFormat,
     .kind = OptionKind::names,
     .title = "Types by name",
     .value_name = "FILTER=TYPE",
     .brief = "gguf: another type for some tensors; repeatable",
     .help = "Another type for the tensors that a filter selects, such as attn_v=q8_0 or layer:0-3=q6_k. "
             "The last that selects a tensor counts. Vectors and norms keep their type.",
     .access = access::words<parse_type_rule, print_type_rule, &Request::layout, &ExportOptions::types>,
     .separator = ';'},
    {.id = "imatrix",
     .group = kFormat,
     .kind = OptionKind::text,
     .title = "Importance matrix",
     .value_name = "FILE",
     .brief = "gguf: importance of columns, by llama-imatrix",
     .help = "A file of llama.cpp's llama-imatrix, which says how much each column of a weight matters. "
             "Quantized types other than q8_0, tq2_0, mxfp4 and nvfp4 come closer to the model with it.",
     .access = access::text<&Request::imatrix>},
    {.id = "names",
     .group = kFormat,
     .kind = OptionKind::choice,
     .title = "Names",
     .value_name = "WHICH",
     .brief = "auto (those of the format's programs) or keep",
     .help = "Names of tensors. With auto, a Hugging Face model written as GGUF gets the names, the keys and "
             "the forms of tensors that llama.cpp runs, and a GGUF file written as a safetensors folder gets "
             "those of transformers. With keep, tensors stay as they are in the model.",
     .default_text = "auto",
     .choices = name_choices,
     .access = access::word<parse_names, names_word, &Request::layout, &ExportOptions::keep_names>},
    {.id = "pre_tokenizer",
     .group = kFormat,
     .kind = OptionKind::text,
     .title = "Pre-tokenizer",
     .value_name = "ID",
     .brief = "gguf: how texts are cut, as llama.cpp names it",
     .help =
         "How the tokenizer cuts texts, as llama.cpp names it: gpt-2, llama-bpe, qwen2 ... Only a tokenizer "
         "that llama.cpp has no name for needs it.",
     .default_text = "found by the tokenizer",
     .access = access::text<&Request::layout, &ExportOptions::pre_tokenizer>},
    {.id = "ignore",
     .group = kFormat,
     .kind = OptionKind::names,
     .title = "Settings to ignore",
     .value_name = "SETTING",
     .brief = "settings that the output need not follow",
     .help =
         "Settings of config.json, such as sliding_window, that a GGUF file may leave out although llama.cpp "
         "then computes something else than the model, or that say how packed weights were made; from GGUF, "
         "keys of the file that config.json cannot say; of a merge also settings of adapter_config.json that "
         "are not known. "
         "Without it, such a setting is an error. A * stands for any text.",
     .access = access::words<same_word, same_word, &Request::layout, &ExportOptions::ignored_settings>},
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
     .help =
         "Fails, before anything is written, where the output would leave something out; and, before the "
         "output appears, where a number of this run is too large for its new type, or infinite or NaN in "
         "the source.",
     .access = access::flag<&Request::layout, &ExportOptions::strict>},
    {.id = "memory_budget",
     .group = kWriting,
     .kind = OptionKind::bytes,
     .title = "Memory budget",
     .value_name = "SIZE",
     .brief = "memory for buffers",
     .help = "Memory that buffers may take, for tensors of any size. Each tensor takes about 1 KiB besides.",
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
             "end, of a merge those of the base. A "
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

void check_options_taken(const Exporter& exporter, const ConvertRequest& request) {
  const Request unset;
  for (const auto& option : kOptions) {
    if (takes_option(exporter, option.id) || same_option(option, request, unset)) continue;
    std::string others;
    for (const Exporter& row : exporters())
      if (takes_option(row, option.id)) others += (others.empty() ? "" : ", ") + std::string(row.id);
    throw Error(ErrorCode::usage, "{}: not an option of {}, but of {}", option.title, exporter.id, others);
  }
}

}  // namespace loadline::exporters
