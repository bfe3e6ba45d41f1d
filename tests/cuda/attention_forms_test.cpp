// Every mask and score that attention_run.hpp has, at each depth of its tiles: by tiles and their backward, and by
// splits, in rows that can be read 16 bytes at a time and in rows that cannot.
#include "attention_judge.hpp"

namespace {

using namespace attention;

struct Form {
  const char* mask;
  double cap;
  const char* bias;
  std::vector<int> depths;
};
const Form forms[] = {{"causal", 0, "none", {32, 64, 128, 256}},
                      {"causal", 2, "none", {32, 64}},
                      {"causal", 0, "alibi", {32, 64}},
                      {"causal", 0, "table", {32}},
                      {"bidirectional", 0, "none", {32, 64}},
                      {"bidirectional", 0, "table", {32}},
                      {"window", 0, "none", {32}},
                      {"window", 2, "none", {32, 64}},
                      {"chunked", 0, "none", {32}},
                      {"prefix", 0, "none", {32}},
                      {"every_third", 0, "none", {32}}};

void set_policies(Problem& p, const Form& form, int window) {
  p.mask = form.mask;
  p.cap = form.cap;
  p.window = window;
  p.bias = form.bias;
  if (p.bias != "table") return;
  p.scale = .2;
  use_table(p);
}

template <class Check>
void for_forms(Check check_form) {
  for (const Form& form : forms)
    for (const int depth : form.depths)
      for (const bool aligned : {true, false})
        for (const Number number : {Number::f32, Number::bf16}) check_form(form, aligned ? depth : depth - 1, number);
}

TEST_CASE("attend and attend_backward: every form, aligned and not") {
  for_forms([](const Form& form, int head_dim, Number number) {
    Problem p = problem({{.queries = 68, .keys = 68, .prefix = 40}, {.queries = 3, .keys = 3}}, 2, 1, head_dim);
    if (form.mask == std::string("window"))  // whole tiles within it
      p = problem({{.queries = 66, .keys = 190, .first_position = 124}}, 2, 1, head_dim);
    set_policies(p, form, form.mask == std::string("window") ? 140 : 30);
    p.backward = true;
    check(number, p, false);
  });
}
TEST_CASE("attend: every form in a ring, aligned and not") {
  for_forms([](const Form& form, int head_dim, Number number) {
    Problem p = problem({{.queries = 66, .keys = 70, .first_position = 4, .ring = 80, .prefix = 40}}, 2, 1, head_dim);
    set_policies(p, form, 30);
    check(number, p, false);
  });
}
TEST_CASE("decode: every form, in a ring and not, aligned and not") {
  for_forms([](const Form& form, int head_dim, Number number) {
    for (const int ring : {0, 900}) {  // seven splits
      Problem p =
          problem({{.queries = 5, .keys = 800, .first_position = 795, .ring = ring, .prefix = 750}}, 4, 2, head_dim);
      set_policies(p, form, form.mask == std::string("chunked") ? 900 : 790);
      check(number, p, false);
    }
  });
}

}  // namespace
