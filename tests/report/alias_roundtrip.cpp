// An alias that was printed, and compiled again, is the architecture that it was printed from.
#include <doctest/doctest.h>

#include "printed_aliases.hpp"
#include "report/alias_cases.hpp"
#include "typeformer/report/architecture.hpp"

using namespace typeformer;

namespace {

template <class Printed, class Original>
void check() {
  CAPTURE(std::string(Original::name));
  CHECK(Printed::parameter_count == Original::parameter_count);
  CHECK(Printed::name == Original::name);
  const auto printed = fields_of(architecture_of<Printed>()), original = fields_of(architecture_of<Original>());
  REQUIRE(printed.size() == original.size());
  for (std::size_t i = 0; i < original.size(); ++i) {
    CHECK(printed[i].name == original[i].name);
    CAPTURE(original[i].name);
    CHECK(printed[i].value == original[i].value);
  }
}
template <class... Printed, class... Original>
void check_all(printed::List<Printed...>, alias_cases::List<Original...>) {
  static_assert(sizeof...(Printed) == sizeof...(Original));
  (check<Printed, Original>(), ...);
}

}  // namespace

TEST_CASE("printed aliases compile to what they were printed from") { check_all(printed::All{}, alias_cases::All{}); }
