#include "Cost/SecondsText.h"

#include <catch2/catch_all.hpp>

using fusec::cost::secondsText;

TEST_CASE("Seconds are said in the unit that fits, with three digits") {
  CHECK(secondsText(0) == "0 ns");
  CHECK(secondsText(1.234e-10) == "0.123 ns");
  CHECK(secondsText(1.2345e-5) == "12.3 us");
  CHECK(secondsText(9.996e-4) == "1 ms");
  CHECK(secondsText(0.25) == "250 ms");
  CHECK(secondsText(2.5) == "2.5 s");
  CHECK(secondsText(123.4) == "123 s");
}
