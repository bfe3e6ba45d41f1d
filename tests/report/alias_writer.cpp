/// Prints the aliases of every case as a header: Case0, Case1, ... in the order of alias_cases.hpp, and their list.
#include <cstdio>
#include <string>

#include "report/alias_cases.hpp"
#include "typeformer/report/alias.hpp"

int main() {
  std::string source =
      "#pragma once\n#include \"typeformer/typeformer.hpp\"\nnamespace printed {\nusing namespace typeformer;\n";
  std::string list;
  alias_cases::for_each(alias_cases::All{}, [&]<class M>(int number) {
    const std::string name = "Case" + std::to_string(number);
    source += typeformer::alias_source(typeformer::architecture_of<M>(), name);
    list += (list.empty() ? "" : ", ") + name;
  });
  std::printf("%stemplate <class... M>\nstruct List {};\nusing All = List<%s>;\n}  // namespace printed\n",
              source.c_str(), list.c_str());
}
