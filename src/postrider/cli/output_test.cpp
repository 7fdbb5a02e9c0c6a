#include "postrider/cli/output.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace postrider::cli {
namespace {

std::string shown(const char* text) {
  return cell_text(boost::json::parse(text));
}

TEST(Cells, ShowNumbersAsPeopleWriteThem) {
  EXPECT_EQ(shown("5.062666666666667"), "5.062667");
  EXPECT_EQ(shown("7E-3"), "0.007");
  EXPECT_EQ(shown("20.0"), "20");
  EXPECT_EQ(shown("0.0"), "0");
  EXPECT_EQ(shown("-1.5"), "-1.5");
  EXPECT_EQ(shown("12345678.5"), "12345678.5");
  EXPECT_EQ(shown("100"), "100");
}

TEST(Tables, CutLongCellsUnlessTheyAreWantedWhole) {
  const std::string text(100, 'x');
  const boost::json::array rows{boost::json::object{{"detail", text}}};
  EXPECT_EQ(table_text(rows, {{"DETAIL", "/detail"}}).find(text), std::string::npos);
  EXPECT_NE(table_text(rows, {{"DETAIL", "/detail", true}}).find(text), std::string::npos);
}

}  // namespace
}  // namespace postrider::cli
