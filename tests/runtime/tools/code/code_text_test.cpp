#include "runtime/tools/code/code_text.h"

#include <doctest/doctest.h>

#include <string>

namespace stepop {
namespace code_text_test {

bool is_same(const std::string& a, const std::string& b) {
  return code_without_comments(a) == code_without_comments(b);
}

TEST_CASE("another comment and other blanks are the same code, as long as no line moves") {
  CHECK(code_without_comments("int  a;\t// one\n  /* two\n three */ int b;  \n") ==
        "int a;\n\nint b;\n");
  CHECK(is_same("int a; // one\n", "int a;\n"));
  CHECK(is_same("int/* one */a;\n", "int a;\n"));
  CHECK(is_same("  int a;\n", "int a;   \r\n"));
  CHECK(is_same("f(1'000, 'a', '\"', L'x'); // \"\n", "f(1'000, 'a', '\"', L'x'); // '\n"));
  CHECK(is_same("#include <a.h>\n// it's\nint a;\n", "#include <a.h>\n\nint a;\n"));
}

TEST_CASE("what the compiler sees is never taken for a comment") {
  CHECK_FALSE(is_same("int a;\nint b;\n", "int a; // one\n// two\nint b;\n"));  // lines move
  CHECK_FALSE(is_same("f(\"http://a\");\n", "f(\"http://b\");\n"));
  CHECK_FALSE(is_same("f(\"a\\\"//b\");\n", "f(\"a\\\"//c\");\n"));
  CHECK_FALSE(is_same("f(\"a  b\");\n", "f(\"a b\");\n"));
  CHECK_FALSE(is_same("char c = '\"'; f(\"//a\");\n", "char c = '\"'; f(\"//b\");\n"));
  CHECK_FALSE(is_same("f(1'000, \"//a\");\n", "f(1'000, \"//b\");\n"));
  CHECK_FALSE(is_same("f(u8'\"', \"//a\");\n", "f(u8'\"', \"//b\");\n"));
  CHECK_FALSE(is_same("f(R\"(\" // a)\");\n", "f(R\"(\" // b)\");\n"));
  CHECK_FALSE(is_same("#include <a//b.h>\n", "#include <a//c.h>\n"));
  CHECK_FALSE(is_same("#define A /* a\n*/ 1\n", "#define A /* a\n*/ 2\n"));
  CHECK_FALSE(is_same("// a \\\n/*\nint a;\n//*/\n", "// a \\\n/*\nint b;\n//*/\n"));
  CHECK_FALSE(is_same("// a \\ \n/*\nint a;\n//*/\n", "// a \\ \n/*\nint b;\n//*/\n"));
  CHECK_FALSE(
      is_same("#if 0\ndon't\n#endif\nf(\"//a\");\n", "#if 0\ndon't\n#endif\nf(\"//b\");\n"));
  CHECK_FALSE(is_same("int ab;\n", "int a b;\n"));
  CHECK_FALSE(is_same("a + +b;\n", "a ++b;\n"));
  CHECK_FALSE(is_same("a / *b;\n", "a /*b;\n*/;\n"));
}

}  // namespace code_text_test
}  // namespace stepop
