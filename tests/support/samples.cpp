// Builds files: zips, pickles, protobuf, ONNX, samples.
#include "tests/support/samples.h"

#include "core/graph/dtype_and_shape.h"
#include "tests/support/onnx_builder.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include <fmt/core.h>
#include <zlib.h>

namespace loadline::testing {

// --- Builds the samples.

namespace {

using namespace pickle;

// The object of both torch samples; `at` gives a storage in the form of the file.
template <typename Storage>
std::string sample_object(Storage at) {
  const auto utils = [](std::string_view name) { return global("torch._utils", name); };
  const std::string layout = call(global("torch.serialization", "_get_layout"), {text("torch.sparse_coo")});
  const std::string matrix = at("0", "FloatStorage", 6);
  const std::string weight = tensor(matrix, 0, {2, 3}, {3, 1});
  const std::string ones = tensor(at("1", "HalfStorage", 4), 0, {4}, {1});
  const std::string indices = tensor(at("3", "LongStorage", 4), 0, {2, 2}, {2, 1});
  const std::string state = dict({{"mask", tensor(at("6", "BoolStorage", 2), 0, {2}, {1})}});
  const std::string quantized = tuple({global("torch", "per_tensor_affine"), real(0.5), number(3)});
  return dict(
      {{"model", global("collections", "OrderedDict") + ")R(" + text("weight") + weight + text("tied") +
                     weight + text("transposed") + tensor(matrix, 0, {3, 2}, {1, 3}) + text("row") +
                     tensor(matrix, 3, {3}, {1}) + "u}" + text("_metadata") +
                     dict({{"", dict({{"version", number(1)}})}}) + "sb"},
       {"parameter", call(utils("_rebuild_parameter"), {ones, "\x88", "}"})},
       {"float8", tensor_v3(at("2", "FloatStorage", 2), 0, {8}, {1}, "float8_e4m3fn")},
       {"packed", tensor_v3(at("2", "FloatStorage", 2), 0, {2, 4}, {4, 1}, "float4_e2m1fn_x2")},
       {"sparse", call(utils("_rebuild_sparse_tensor"),
                       {layout, tuple({indices, ones, tuple({number(4), number(4)}), "\x88"})})},
       {"quantized",
        call(utils("_rebuild_qtensor"), {at("4", "QInt8Storage", 4), number(0), tuple({number(4)}),
                                         tuple({number(1)}), quantized, "\x89", "}"})},
       {"wrapped", call(global("torch._tensor", "_rebuild_from_type_v2"),
                        {utils("_rebuild_tensor_v2"), global("my", "Class"),
                         tuple({at("5", "DoubleStorage", 1), number(0), ")", ")", "\x89", "}"}), state})},
       {"shape only", call(utils("_rebuild_meta_tensor_no_storage"),
                           {global("torch", "float32"), tuple({number(2), number(3)}),
                            tuple({number(3), number(1)}), "\x89"})},
       {"storage", at("7", "IntStorage", 2)},
       {"list", list({weight, tuple({ones, "N"})})},
       {"epoch", number(3)},
       {"loss", real(0.25)},
       {"big", "\x8A\x09" + std::string(8, '\xFF') + std::string(1, '\x7F')},
       {"negative", number(-5)},
       {"name", text("gr\xC3\xBC\xC3\x9F")},
       {"done", "\x88"},
       {"betas", tuple({real(0.5), real(0.875)})},
       {"size", call(global("torch", "Size"), {tuple({number(2), number(3)})})},
       {"device", call(global("torch", "device"), {text("cuda")})},
       {"bytes", call(global("_codecs", "encode"), {text("abc"), text("latin1")})},
       {"set", call(global("__builtin__", "set"), {list({number(1), number(2)})})},
       {"counter", call(global("collections", "Counter"), {dict({{"a", number(3)}})})},
       {"default", call(global("collections", "defaultdict"), {global("__builtin__", "list")})},
       {"options", global("argparse", "Namespace") + ")\x81" + dict({{"lr", real(1)}}) + "b"},
       {"dtype", global("torch", "float32")}});
}

const std::pair<const char*, std::size_t> kSampleStorages[] = {{"0", 24}, {"1", 8}, {"2", 8}, {"3", 32},
                                                               {"4", 4},  {"5", 8}, {"6", 2}, {"7", 8}};

}  // namespace

std::string pattern(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i * 7 + 3);
  return bytes;
}

std::vector<ZipSpec> torch_members(std::string pickle, const Records& records) {
  std::vector<ZipSpec> members;
  const auto add = [&](const std::string& name, std::string content) {
    ZipSpec member;
    member.name = "model/" + name;
    member.sizes_follow = !content.empty();
    member.content = std::move(content);
    member.alignment = 64;
    members.push_back(std::move(member));
  };
  add("data.pkl", std::move(pickle));
  for (const auto& [name, content] : records) add(name, content);
  return members;
}

std::string torch_zip(std::string pickle, const Records& records) {
  return zip_bytes(torch_members(std::move(pickle), records), {.zip64 = true});
}

std::string sample_torch() {
  // float8 and float4 need storages without a type
  const auto at = [](std::string_view key, std::string_view type, std::int64_t numel) {
    if (key != "2") return storage(key, type, numel);
    return tuple({text("storage"), global("torch.storage", "UntypedStorage"), text(key), text("cpu"),
                  number(8)}) +
           "Q";
  };
  Records records = {{".format_version", "1"}, {".storage_alignment", "64"}, {"byteorder", "little"}};
  for (const auto& [key, bytes] : kSampleStorages)
    records.emplace_back(std::string("data/") + key, pattern(bytes));
  records.emplace_back("data/8", pattern(5));  // of no tensor
  records.emplace_back("version", "3\n");
  records.emplace_back(".data/serialization_id", std::string(40, '7'));
  return torch_zip(stream(sample_object(at)), records);
}

std::string legacy_preamble() {
  return "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." + stream("M\xe9\x03") +
         stream(dict({{"protocol_version", "M\xe9\x03"}, {"little_endian", "\x88"}}));
}

std::string sample_torch_legacy() {
  const auto at = [](std::string_view key, std::string_view type, std::int64_t numel) {
    if (key == "2")
      return tuple({text("storage"), global("torch.storage", "UntypedStorage"), text(key), text("cpu"),
                    number(8), "N"}) +
             "Q";
    // the second half of a larger storage, as torch before 0.4 wrote views
    if (key == "7") return legacy_storage(key, type, 2 * numel, tuple({text("view"), number(2), number(2)}));
    return legacy_storage(key, type, numel);
  };
  std::string file = legacy_preamble() + stream(sample_object(at));
  std::string keys = "](", payload;
  for (const auto& [key, bytes] : kSampleStorages) {
    const std::size_t widths[] = {4, 2, 1, 8, 1, 8, 1, 4};
    const std::size_t size = *key == '7' ? 2 * bytes : bytes;
    keys += text(key);
    payload += little_endian(size / widths[*key - '0'], 8) + pattern(size);
  }
  return file + stream(keys + "e") + payload;
}

std::string npy_header(std::string_view descr, std::string_view shape, std::string_view fortran) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran, shape);
}

std::string npy_bytes(std::string_view header, std::size_t data) {
  std::string text(header);
  text.append((64 - (10 + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  return "\x93NUMPY" + std::string("\1\0", 2) + little_endian(text.size(), 2) + text + pattern(data);
}

std::string sample_npy() { return npy_bytes(npy_header("<f4", "(2, 3)"), 24); }

std::string sample_npz() {
  const auto member = [](const char* name, std::string content, bool deflate) {
    ZipSpec spec;
    spec.name = name;
    spec.content = std::move(content);
    spec.deflate = deflate;
    return spec;
  };
  return zip_bytes({member("w.npy", npy_bytes(npy_header("<f2", "(2, 3)"), 12), false),
                    member("W.npy", npy_bytes(npy_header(">i8", "(2,)"), 16), false),
                    member("packed.npy", npy_bytes(npy_header("<f8", "(4, 5)", "True"), 160), true),
                    member("text.npy", npy_bytes(npy_header("<U2", "(3,)"), 24), true),
                    member("readme.txt", "hello", false)});
}

std::string pt2_entry(std::string_view name, std::string_view path, std::string_view sizes,
                      std::string_view strides, int offset, int dtype) {
  const auto as_ints = [](std::string_view numbers) {
    std::string all;
    for (std::size_t at = 0; at < numbers.size();) {
      const std::size_t end = std::min(numbers.find(',', at), numbers.size());
      all += fmt::format(R"({}{{"as_int": {}}})", all.empty() ? "" : ", ", numbers.substr(at, end - at));
      at = end + 1;
    }
    return all;
  };
  return fmt::format(
      R"("{}": {{"path_name": "{}", "is_param": true, "use_pickle": false, "tensor_meta": {{"dtype": {}, "sizes": [{}], "requires_grad": true, "device": {{"type": "cpu", "index": null}}, "strides": [{}], "storage_offset": {{"as_int": {}}}, "layout": 7}}}})",
      name, path, dtype, as_ints(sizes), as_ints(strides), offset);
}

std::string pt2_zip(const std::string& weights_config, const Records& records) {
  std::vector<ZipSpec> members =
      torch_members(fmt::format(R"({{"config": {{{}}}}})", weights_config), records);
  members[0].name = "model/data/weights/model_weights_config.json";
  return zip_bytes(members, {.zip64 = true});
}

std::string sample_pt2() {
  const std::string weights = pt2_entry("a.weight", "weight_0", "2,3", "3,1") + ", " +
                              pt2_entry("b.weight", "weight_0", "2,3", "3,1") + ", " +
                              pt2_entry("a.weight_t", "weight_0", "3,2", "1,3") + ", " +
                              pt2_entry("half", "weight_1", "", "", 1, 6);
  const std::string constants =
      pt2_entry("k", "tensor_0", "2", "1", 0, 5) +
      R"(, "obj": {"path_name": "custom_obj_0", "is_param": false, "use_pickle": true, "tensor_meta": null})";
  return pt2_zip(weights, {{"data/weights/weight_0", pattern(24)},
                           {"data/weights/weight_1", pattern(4)},
                           {"data/weights/weight_2", pattern(3)},
                           {"data/constants/tensor_0", pattern(16)},
                           {"data/constants/custom_obj_0", "?"},
                           {"data/constants/model_constants_config.json",
                            fmt::format(R"({{"config": {{{}}}}})", constants)},
                           {"models/model.json", "{}"},
                           {"archive_format", "pt2"},
                           {"archive_version", "0"},
                           {".data/version", "6\n"},
                           {"byteorder", "little"}});
}

// --- Writes protobuf wire data.

std::string varint_bytes(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}

Proto& Proto::number(std::uint32_t field, std::uint64_t value) {
  bytes_ += varint_bytes(field << 3) + varint_bytes(value);
  return *this;
}

Proto& Proto::fixed32(std::uint32_t field, std::uint32_t value) {
  bytes_ += varint_bytes(field << 3 | 5);
  for (int i = 0; i < 4; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
  return *this;
}

Proto& Proto::fixed64(std::uint32_t field, std::uint64_t value) {
  bytes_ += varint_bytes(field << 3 | 1);
  for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
  return *this;
}

Proto& Proto::text(std::uint32_t field, std::string_view content) {
  bytes_ += varint_bytes(field << 3 | 2) + varint_bytes(content.size());
  bytes_ += content;
  return *this;
}

Proto& Proto::varints(std::uint32_t field, const std::vector<std::uint64_t>& values) {
  std::string run;
  for (const std::uint64_t value : values) run += varint_bytes(value);
  return text(field, run);
}

Proto& Proto::raw(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}

}  // namespace loadline::testing

namespace loadline::testing::onnx {

// --- Builds ONNX messages.

namespace {

Proto opset(std::string_view domain, std::uint64_t version) {
  Proto proto;
  if (!domain.empty()) proto.text(1, domain);
  return proto.number(2, version);
}

Proto entry(std::string_view key, std::string_view text) { return Proto().text(1, key).text(2, text); }

Proto attribute(std::string_view name, std::uint64_t kind) { return Proto().text(1, name).number(20, kind); }

std::string pattern(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(i * 7 + 3);
  return text;
}

// Five elements of each type: odd, so that packed types end inside a byte (6-bit types may not: left out).
void add_every_type(Proto& graph) {
  for (const graph::DTypeInfo& info : graph::dtype_table()) {
    if (info.onnx < 1 || info.id == graph::DType::f6_e2m3 || info.id == graph::DType::f6_e3m2) continue;
    const std::string name(info.name);
    if (info.id == graph::DType::string) {
      graph.text(kInitializer, tensor("typed." + name, kString, {2}).text(6, "one").text(6, "two"));
      continue;
    }
    const auto bytes = static_cast<std::size_t>(graph::packed_byte_size(info.id, 5).value());
    graph.text(kInitializer, raw_tensor("raw." + name, info.onnx, {5}, pattern(bytes)));
    Proto typed = tensor("typed." + name, info.onnx, {5});
    if (info.id == graph::DType::f32 || info.id == graph::DType::c64)
      typed.text(4, pattern(bytes));
    else if (info.id == graph::DType::f64 || info.id == graph::DType::c128)
      typed.text(10, pattern(bytes));
    else if (info.id == graph::DType::i64)
      typed.varints(7, {1, 2, 3, 4, ~std::uint64_t{0}});
    else if (info.id == graph::DType::u64 || info.id == graph::DType::u32)
      typed.varints(11, {1, 2, 3, 4, 0xFFFFFFFF});
    else
      typed.varints(5, std::vector<std::uint64_t>(bytes / info.block_bytes, 1));
    graph.text(kInitializer, typed);
  }
}

void add_external(Proto& graph) {
  graph.text(kInitializer,
             external_tensor("external.a", kFloat, {4, 2},
                             {{"location", "sample.data"}, {"offset", "64"}, {"length", "32"}}));
  graph.text(kInitializer,
             external_tensor("external.tied", kFloat, {4, 2},
                             {{"location", "sample.data"}, {"offset", "64"}, {"length", "32"}}));
  graph.text(kInitializer, external_tensor("external.b", kFloat8, {3}, {{"location", "./sample.data"}}));
}

Proto branch(std::string_view name, std::string_view output) {
  return Proto()
      .text(kNode, node("Add", {"hidden", "bias"}, {"sum"}))
      .text(kNode, node("Constant", {}, {"one"})
                       .text(5, attribute_tensor("value", raw_tensor("", kFloat, {},
                                                                     std::string_view("\0\0\x80\x3F", 4)))))
      .text(kNode, node("Mul", {"sum", "one"}, {std::string(output)}))
      .text(2, name)
      .text(kInitializer, raw_tensor("bias", kFloat, {1}, "1234"))
      .text(kOutput, value(output, kFloat, {}));
}

}  // namespace

Proto tensor(std::string_view name, std::int64_t type, const Dims& dims) {
  Proto proto;
  for (const std::uint64_t dim : dims) proto.number(1, dim);
  proto.number(2, static_cast<std::uint64_t>(type));
  if (!name.empty()) proto.text(8, name);
  return proto;
}

Proto raw_tensor(std::string_view name, std::int64_t type, const Dims& dims, std::string_view bytes) {
  return tensor(name, type, dims).text(9, bytes);
}

Proto external_tensor(std::string_view name, std::int64_t type, const Dims& dims,
                      const std::vector<std::pair<std::string, std::string>>& entries) {
  Proto proto = tensor(name, type, dims);
  for (const auto& [key, text] : entries) proto.text(13, entry(key, text));
  return proto.number(14, 1);
}

Proto int64_tensor(std::string_view name, const std::vector<std::uint64_t>& values) {
  return tensor(name, kInt64, {values.size()}).varints(7, values);
}

Proto value(std::string_view name, std::int64_t type, const Names& dims) {
  Proto shape;
  for (const std::string& dim : dims) {
    Proto one;
    if (!dim.empty() && dim.size() < 19 && dim.find_first_not_of("0123456789") == std::string::npos)
      one.number(1, std::stoull(dim));
    else if (dim == "-1")
      one.number(1, ~std::uint64_t{0});
    else if (!dim.empty())
      one.text(2, dim);
    shape.text(1, one);
  }
  const Proto tensor_type = Proto().number(1, static_cast<std::uint64_t>(type)).text(2, shape);
  return Proto().text(1, name).text(2, Proto().text(1, tensor_type));
}

Proto node(std::string_view op, const Names& inputs, const Names& outputs, std::string_view name,
           std::string_view domain) {
  Proto proto;
  for (const std::string& input : inputs) proto.text(1, input);
  for (const std::string& output : outputs) proto.text(2, output);
  if (!name.empty()) proto.text(3, name);
  proto.text(4, op);
  if (!domain.empty()) proto.text(7, domain);
  return proto;
}

Proto attribute_int(std::string_view name, std::int64_t number) {
  return attribute(name, 2).number(3, static_cast<std::uint64_t>(number));
}

Proto attribute_ints(std::string_view name, const std::vector<std::uint64_t>& numbers) {
  Proto proto = attribute(name, 7);
  for (const std::uint64_t number : numbers) proto.number(8, number);
  return proto;
}

Proto attribute_tensor(std::string_view name, const Proto& held) { return attribute(name, 4).text(5, held); }

Proto attribute_graph(std::string_view name, const Proto& graph) { return attribute(name, 5).text(6, graph); }

std::string model(const Proto& graph, std::uint64_t version, std::uint64_t ir_version) {
  return Proto().number(1, ir_version).text(7, graph).text(8, opset("", version)).bytes();
}

std::string weights_model(const std::vector<Proto>& tensors) {
  Proto graph;
  for (const Proto& one : tensors) graph.text(kInitializer, one);
  return model(graph);
}

std::string sample_onnx() {
  Proto graph;
  graph.text(kNode, node("MatMul", {"x", "weight"}, {"hidden"}, "project"));
  graph.text(kNode, node("Half", {"hidden"}, {"half"}, "", "local"));
  graph.text(kNode, node("If", {"flag"}, {"chosen"}, "choose")
                        .text(5, attribute_graph("then_branch", branch("then", "out")))
                        .text(5, attribute_graph("else_branch", branch("else", "out"))));
  graph.text(kNode, node("Add", {"chosen", "half"}, {"y"}));
  graph.text(2, "sample");
  graph.text(kInitializer, raw_tensor("weight", kFloat, {4, 2}, pattern(32)));
  add_every_type(graph);
  add_external(graph);
  graph.text(kInitializer, raw_tensor("unknown", 99, {3}, "seven77"));
  graph.text(kInitializer, tensor("empty", kFloat, {0, 7}));
  graph.text(kInitializer, raw_tensor("esc\x07 aped", kUint8, {}, "a"));
  graph.text(kInput, value("x", kFloat, {"batch", "past_sequence_length + sequence_length", "4"}));
  graph.text(kInput, value("flag", kBool, {}));
  graph.text(kOutput, value("y", kFloat, {"batch", "", "2"}));
  graph.text(kValueInfo, value("hidden", kFloat, {"batch", "total_sequence_length", "2"}));
  graph.text(kSparse, Proto()
                          .text(1, raw_tensor("sparse", kFloat, {2}, "12345678"))
                          .text(2, int64_tensor("", {1, 5}))
                          .number(3, 6));

  const Proto constant =
      node("Constant", {}, {"two"})
          .text(5, attribute_tensor("value", raw_tensor("", kFloat, {}, std::string_view("\0\0\0\x40", 4))));
  const Proto function = Proto()
                             .text(1, "Half")
                             .text(4, "in")
                             .text(5, "out")
                             .text(7, constant)
                             .text(7, node("Div", {"in", "two"}, {"out"}))
                             .text(9, opset("", 17))
                             .text(10, "local");
  const Proto training =
      Proto().text(1, Proto().text(kInitializer, raw_tensor("weight", kFloat, {1}, "abcd")));
  return Proto()
      .number(1, 8)
      .text(2, "loadline")
      .text(3, "1.0")
      .text(4, "ai.example")
      .number(5, 3)
      .text(6, "a sample")
      .text(7, graph)
      .text(8, opset("", 17))
      .text(8, opset("local", 1))
      .text(14, entry("author", "nobody"))
      .text(20, training)
      .text(25, function)
      .bytes();
}

std::string sample_onnx_data() { return pattern(96); }

}  // namespace loadline::testing::onnx

namespace loadline::testing {

// --- Writes zip archives for tests.

namespace {

std::string deflated(const std::string& content) {
  z_stream stream = {};
  if (deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string in = content, out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// An extra field of torch's kind that moves the content to a multiple of the alignment.
std::string padding(std::size_t at, std::size_t alignment) {
  if (alignment == 0) return "";
  const std::size_t fill = (alignment - (at + 4) % alignment) % alignment;
  return "FB" + little_endian(fill, 2) + std::string(fill, 'Z');
}

}  // namespace

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

std::string zip_bytes(const std::vector<ZipSpec>& members, const ZipEnd& end) {
  std::string out = end.prefix, directory;
  for (const ZipSpec& member : members) {
    const std::string stored = member.deflate ? deflated(member.content) : member.content;
    const auto crc = static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(member.content.data()), member.content.size()));
    const std::uint16_t method = member.method.value_or(member.deflate ? 8 : 0);
    const auto flags = static_cast<std::uint16_t>(member.flags | (member.sizes_follow ? 8 : 0));
    const std::string name = member.local_name.value_or(member.name);
    const std::uint64_t header = out.size();
    const auto local = [&](std::uint64_t value) { return little_endian(member.sizes_follow ? 0 : value, 4); };
    const std::string extra =
        member.local_extra +
        padding(out.size() + 30 + name.size() + member.local_extra.size(), member.alignment);
    out += "PK\3\4" + little_endian(20, 2) + little_endian(flags, 2) +
           little_endian(member.local_method.value_or(method), 2) + little_endian(0, 4) +
           local(member.local_crc.value_or(member.crc.value_or(crc))) +
           local(member.stored_bytes.value_or(static_cast<std::uint32_t>(stored.size()))) +
           local(member.local_bytes.value_or(
               member.bytes.value_or(static_cast<std::uint32_t>(member.content.size())))) +
           little_endian(name.size(), 2) + little_endian(extra.size(), 2) + name + extra + stored;
    if (member.sizes_follow)
      out += member.descriptor.value_or("PK\7\10" + little_endian(member.crc.value_or(crc), 4) +
                                        little_endian(stored.size(), 4) +
                                        little_endian(member.content.size(), 4));
    out += member.after;
    directory += "PK\1\2" + little_endian(20, 2) + little_endian(20, 2) + little_endian(flags, 2) +
                 little_endian(method, 2) + little_endian(0, 4) + little_endian(member.crc.value_or(crc), 4) +
                 little_endian(member.stored_bytes.value_or(static_cast<std::uint32_t>(stored.size())), 4) +
                 little_endian(member.bytes.value_or(static_cast<std::uint32_t>(member.content.size())), 4) +
                 little_endian(member.name.size(), 2) + little_endian(member.extra.size(), 2) +
                 little_endian(0, 2) + little_endian(member.disk, 2) + little_endian(0, 6) +
                 little_endian(member.header.value_or(static_cast<std::uint32_t>(header)), 4) + member.name +
                 member.extra;
  }
  const std::uint64_t at = out.size();
  out += directory + end.before_end;
  const std::uint64_t end64 = out.size();
  if (end.zip64)
    out += "PK\6\6" + little_endian(44 + end.extension.size(), 8) + little_endian(45, 2) +
           little_endian(45, 2) + little_endian(0, 8) +
           little_endian(end.members64.value_or(members.size()), 8) +
           little_endian(end.members64.value_or(members.size()), 8) + little_endian(directory.size(), 8) +
           little_endian(end.directory64.value_or(at), 8) + end.extension + "PK\6\7" + little_endian(0, 4) +
           little_endian(end.end64.value_or(end64), 8) + little_endian(1, 4);
  const auto count = end.members.value_or(static_cast<std::uint16_t>(members.size()));
  out += "PK\5\6" + little_endian(end.disk, 4) + little_endian(count, 2) + little_endian(count, 2) +
         little_endian(end.directory_bytes.value_or(static_cast<std::uint32_t>(directory.size())), 4) +
         little_endian(end.directory.value_or(static_cast<std::uint32_t>(at)), 4) +
         little_endian(end.comment_bytes, 2);
  return out + end.after_end;
}

}  // namespace loadline::testing

namespace loadline::testing::pickle {

// --- Writes pickles for tests.

namespace {

std::string numbers(std::initializer_list<std::int64_t> values) {
  std::string items = "(";
  for (const std::int64_t value : values) items += number(value);
  return items + "t";
}

std::string hooks() { return global("collections", "OrderedDict") + ")R"; }

}  // namespace

std::string text(std::string_view text) { return "X" + little_endian(text.size(), 4) + std::string(text); }

std::string number(std::int64_t value) {
  if (value >= 0 && value < 256) return "K" + little_endian(static_cast<std::uint64_t>(value), 1);
  return "\x8A\x08" + little_endian(static_cast<std::uint64_t>(value), 8);
}

std::string real(double value) {
  std::string bytes = little_endian(std::bit_cast<std::uint64_t>(value), 8);
  std::reverse(bytes.begin(), bytes.end());
  return "G" + bytes;
}

std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

std::string tuple(std::initializer_list<std::string> items) {
  std::string all = "(";
  for (const std::string& item : items) all += item;
  return all + "t";
}

std::string list(std::initializer_list<std::string> items) {
  std::string all = "](";
  for (const std::string& item : items) all += item;
  return all + "e";
}

std::string dict(std::initializer_list<std::pair<std::string, std::string>> items) {
  std::string all = "}(";
  for (const auto& [key, value] : items) all += text(key) + value;
  return all + "u";
}

std::string call(const std::string& global, std::initializer_list<std::string> arguments) {
  return global + tuple(arguments) + "R";
}

std::string stream(const std::string& value) { return "\x80\x02" + value + "."; }

std::string storage(std::string_view key, std::string_view type, std::int64_t numel) {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), number(numel)}) + "Q";
}

std::string legacy_storage(std::string_view key, std::string_view type, std::int64_t numel,
                           const std::string& view) {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), number(numel), view}) + "Q";
}

std::string tensor(const std::string& storage, std::int64_t offset, std::initializer_list<std::int64_t> size,
                   std::initializer_list<std::int64_t> stride) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              {storage, number(offset), numbers(size), numbers(stride), "\x89", hooks()});
}

std::string tensor_v3(const std::string& storage, std::int64_t offset,
                      std::initializer_list<std::int64_t> size, std::initializer_list<std::int64_t> stride,
                      std::string_view dtype) {
  return call(
      global("torch._utils", "_rebuild_tensor_v3"),
      {storage, number(offset), numbers(size), numbers(stride), "\x89", hooks(), global("torch", dtype)});
}

}  // namespace loadline::testing::pickle
