// SPDX-License-Identifier: Apache-2.0
#include "core/text_file.h"

#include "core/temporary_folder.h"

namespace stepcast {
namespace {

TEST(TextFile, IsReadWhole) {
  const testing::TemporaryFolder folder;
  const std::string text = std::string("a\r\nb\0c", 6) + std::string(100'000, 'x');
  folder.write("long", text);
  folder.write("empty", "");
  EXPECT_EQ(read_text_file(folder / "long").value(), text);
  EXPECT_EQ(read_text_file(folder / "empty").value(), "");
}

TEST(TextFile, ThatIsNoneIsAnErrorWithItsName) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"missing", "."}) {
    const auto read = read_text_file(folder / name);
    ASSERT_FALSE(read) << name;
    EXPECT_TRUE(to_string(read.error()).starts_with(folder / name)) << to_string(read.error());
  }
}

}  // namespace
}  // namespace stepcast
