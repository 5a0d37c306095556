// npy and npz: goldens, prefixes, types, and the hostile tables.
#include "core/base/error.h"
#include "core/io/graph_reader.h"
#include "tests/support/builders.h"
#include "tests/support/graph_json.h"
#include "tests/support/hostile.h"
#include "tests/support/samples.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::import_bytes;
using testing::npy_bytes;
using testing::npy_header;

TEST(Npy, SamplesEqualTheirGoldens) {
  testing::expect_golden("npy_sample.json", graph_json(import_bytes("w.npy", testing::sample_npy())));
  testing::expect_golden("npz_sample.json", graph_json(import_bytes("m.npz", testing::sample_npz())));
}

TEST(Npy, EveryPrefixIsAClearError) {
  testing::expect_prefixes_refused("w.npy", testing::sample_npy());
  testing::expect_prefixes_refused("m.npz", testing::sample_npz());
}

TEST(Npy, EveryFlippedByteIsSurvived) {
  testing::expect_flips_survived("w.npy", testing::sample_npy(), testing::sample_npy().size());
  testing::expect_flips_survived("m.npz", testing::sample_npz(), testing::sample_npz().size());
}

Tensor typed(std::string_view descr, std::size_t bytes) {
  return import_bytes("w.npy", npy_bytes(npy_header(descr, "(2,)"), bytes)).tensors.at(0);
}

TEST(Npy, EveryType) {
  for (const DTypeInfo& info : dtype_table())
    if (!info.npy.empty()) EXPECT_EQ(typed(info.npy, 2 * info.block_bytes).dtype, info.id) << info.npy;
  EXPECT_EQ(typed("?", 2).dtype, DType::boolean);
  EXPECT_EQ(typed("=f4", 8).dtype, DType::f32);
  EXPECT_EQ(typed("<u1", 2).dtype, DType::u8);
  for (const auto& [descr, bytes] : {std::pair("|O", 20),
                                     {"<U3", 24},
                                     {"|S3", 6},
                                     {"|V2", 4},
                                     {"<M8[ns]", 16},
                                     {"<m8[D]", 16},
                                     {"<f16", 32},
                                     {"<c32", 64}})
    EXPECT_EQ(typed(descr, static_cast<std::size_t>(bytes)).dtype, DType::opaque) << descr;
}

TEST(Npy, RecordsAreBytes) {
  const MetaGraph graph = import_bytes(
      "w.npy",
      npy_bytes(
          "{'descr': [('a', '<f4'), ('b', [('c', '<i4', (2,))])], 'fortran_order': False, 'shape': (2,)}",
          24));
  EXPECT_EQ(graph.tensors[0].dtype, DType::opaque);
  EXPECT_EQ(graph.storages[0].bytes, 24u);
  EXPECT_TRUE(testing::has_note(graph, Severity::warning, "a record"));
}

TEST(Npy, HeadersOfOldWriters) {
  EXPECT_EQ(import_bytes("w.npy",
                         npy_bytes("{\"shape\": (3L, 2L), \"fortran_order\": False, \"descr\": \"<f4\"}", 24))
                .tensors[0]
                .shape,
            (std::vector<std::uint64_t>{3, 2}));
  std::string version2 = "\x93NUMPY" + std::string("\2\0", 2);
  const std::string header = npy_header("<f4", "()") + "\n";
  version2 += testing::little_endian(header.size(), 4) + header + "abcd";
  EXPECT_EQ(elements(import_bytes("w.npy", version2).tensors[0]), 1u);
}

TEST(Npy, FortranOrderIsStrides) {
  const auto strides = [](std::string_view shape, std::size_t bytes) {
    return import_bytes("w.npy", npy_bytes(npy_header("<f4", shape, "True"), bytes)).tensors[0].strides;
  };
  EXPECT_EQ(strides("(2, 3, 4)", 96), (std::vector<std::uint64_t>{1, 2, 6}));
  EXPECT_TRUE(strides("(6,)", 24).empty());
  EXPECT_TRUE(strides("(1, 6, 1)", 24).empty());
  EXPECT_TRUE(strides("(0, 6)", 0).empty());
}

TEST(Npy, TrailingBytesAreNoted) {
  const MetaGraph graph = import_bytes("w.npy", npy_bytes(npy_header("<f4", "(2,)"), 9));
  EXPECT_TRUE(testing::has_note(graph, Severity::warning, "1 bytes follow the array's 8"));
  EXPECT_EQ(graph.storages[0].bytes, 8u);
}

TEST(Npy, CompressedMembersAreReadThroughTheirStream) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "m.npz", testing::sample_npz());
  const auto graph = std::make_shared<const MetaGraph>(
      import_source({std::make_shared<const SourceFile>(SourceFile::open(folder / "m.npz")),
                     [](const std::string&) { return nullptr; },
                     {}}));
  const StorageReader storages(graph);
  const std::string data = testing::pattern(160);
  for (std::size_t i = 0; i < graph->tensors.size(); ++i) {
    if (graph->tensors[i].name != "packed") continue;
    std::string read(160, '\0');
    TensorReader(storages).read(TensorId{static_cast<std::uint32_t>(i)}, 0,
                                std::as_writable_bytes(std::span(read)));
    for (std::size_t row = 0; row < 4; ++row)
      for (std::size_t column = 0; column < 5; ++column)
        EXPECT_EQ(read.substr((row * 5 + column) * 8, 8), data.substr((column * 4 + row) * 8, 8));
  }
}

TEST(Npy, CompressedBigEndianNumbersCannotBeUsed) {
  testing::ZipSpec member;
  member.name = "x.npy";
  member.content = npy_bytes(npy_header(">i4", "(2,)"), 8);
  member.deflate = true;
  const MetaGraph graph = import_bytes("m.npz", testing::zip_bytes({member}));
  EXPECT_TRUE(testing::has_note(graph, Severity::error, "big-endian numbers that are compressed"));
  EXPECT_EQ(graph.tensors[0].dtype, DType::opaque);
}

TEST(Npy, HostileFilesGiveTheirError) {
  const auto header = [](std::string_view text) { return npy_bytes(text, 8); };
  const auto shape = [](std::string_view text) { return npy_bytes(npy_header("<f4", text), 8); };
  const auto descr = [](std::string_view text) { return npy_bytes(npy_header(text, "(2,)"), 8); };
  std::string far_header = testing::sample_npy();
  far_header[8] = far_header[9] = '\xFF';
  std::string huge_header = "\x93NUMPY" + std::string("\2\0", 2) + "\xFF\xFF\xFF\xFF";
  std::string version4 = testing::sample_npy();
  version4[6] = 4;
  std::string minor = testing::sample_npy();
  minor[7] = 1;
  testing::expect_hostile(
      "w.npy",
      {{"header length past the end", far_header, "needs 65535 bytes at 10"},
       {"header of 4 GiB", huge_header, "the limit is 1048576"},
       {"version 4", version4, "version 4.0"},
       {"version 1.1", minor, "version 1.1"},
       {"no dict", header("[]"), "lacks a '{'"},
       {"an empty header", header(""), "lacks a '{'"},
       {"unterminated dict", header("{'descr': '<f4'"), "lacks a '}'"},
       {"unterminated string", header("{'descr': '<f4"), "a string without its end"},
       {"text after the dict", header(npy_header("<f4", "(2,)") + " x"), "goes on after its dict"},
       {"an expression", header("__import__('os').system('id')"), "lacks a '{'"},
       {"an expression as shape", shape("(1+1,)"), "lacks a ')'"},
       {"a call as shape", shape("(int(2),)"), "no tuple of whole numbers"},
       {"no descr", header("{'fortran_order': False, 'shape': (2,)}"), "no 'descr'"},
       {"no shape", header("{'descr': '<f4', 'fortran_order': False}"), "no 'shape'"},
       {"no order", header("{'descr': '<f4', 'shape': (2,)}"), "no 'fortran_order'"},
       {"a key twice", header("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"),
        "'descr' occurs twice"},
       {"an unknown key", header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}"),
        "unknown key 'x'"},
       {"order is a number", header("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}"),
        "neither True nor"},
       {"negative dimension", shape("(-2,)"), "no tuple of whole numbers"},
       {"fractional dimension", shape("(2.0,)"), "lacks a ')'"},
       {"dimension 2^64", shape("(18446744073709551616,)"), "no tuple of whole numbers"},
       {"product 2^64", shape("(4294967296, 4294967296)"), "overflows 64 bits"},
       {"product wraps behind a zero", shape("(4294967296, 0, 4294967296, 4294967296)"), "overflows 64 bits"},
       {"bytes 2^64", shape("(4611686018427387904,)"), "needs more than 2^64 bytes"},
       {"data shorter than needed", shape("(3,)"), "needs 12 bytes for [3] of '<f4', 8 follow"},
       {"65 dimensions", shape("(" + testing::repeat("1,", 65) + ")"), "more than 64 dimensions"},
       {"unclosed list", header("{'descr': [('a', '<f4'"), "a list without its end"},
       {"nested lists", header("{'descr': " + testing::repeat("[", 5000)), "nested too deep"},
       {"empty descr", descr(""), "empty descr"},
       {"unknown kind", descr("<q4"), "no type of numpy"},
       {"no width", descr("<f"), "no type of numpy"},
       {"width 2^64", descr("<f99999999999999999999"), "no type of numpy"},
       {"width 2^32", descr("|S4294967296"), "no type of numpy"},
       {"two types", descr("<f4<f4"), "no type of numpy"},
       {"escape", descr("<f\\x34"), "an escape"}});
}

TEST(Npz, HostileArchivesGiveTheirError) {
  const auto member = [](std::string content, bool deflate) {
    testing::ZipSpec spec;
    spec.name = "a.npy";
    spec.content = std::move(content);
    spec.deflate = deflate;
    return spec;
  };
  testing::ZipSpec lying = member(npy_bytes(npy_header("<f4", "(2,)"), 8), true);
  lying.bytes = static_cast<std::uint32_t>(lying.content.size()) + 100;
  testing::ZipSpec encrypted = member(testing::sample_npy(), false);
  encrypted.flags = 1;
  const testing::ZipSpec plain = member(testing::sample_npy(), false);
  std::string bomb = "\x93NUMPY" + std::string("\2\0", 2) + testing::little_endian(100 << 20, 4);
  testing::expect_hostile(
      "m.npz",
      {{"not an array", testing::zip_bytes({member("hello, world", false)}), "is no npy array"},
       {"shorter than its magic", testing::zip_bytes({member("\x93NUM", true)}), "needs 8 bytes at 0"},
       {"shape beyond the member",
        testing::zip_bytes({member(npy_bytes(npy_header("<f4", "(9,)"), 8), true)}), "needs 36 bytes"},
       {"a header that inflates to 100 MB",
        testing::zip_bytes({member(bomb + std::string(101 << 20, ' '), true)}), "the limit is 1048576"},
       {"encrypted", testing::zip_bytes({encrypted}), "encrypted"},
       {"one name twice", testing::zip_bytes({plain, plain}), "occurs twice"}});
  // the size of a compressed member is only a claim: reading past its end says so
  const MetaGraph graph = import_bytes("m.npz", testing::zip_bytes({lying}));
  EXPECT_TRUE(testing::has_note(graph, Severity::warning, "100 bytes follow"));
}

}  // namespace
}  // namespace loadline
