// What programs tell their user: whole lines on stderr, since stdout is data, and numbers as people
// read them.
#pragma once

#include <string>
#include <string_view>

namespace scalemark {

/// Never throws, nor do note() and tell().
void say(std::string_view line);

/// The same as "scalemark: what": among the lines of a launcher and of other programs.
void note(std::string_view what);

/// An error or what else nobody should miss, in the same form.
void tell(std::string_view what);

/// From now on say() is silent but for warnings, and note() is: --quiet.
void be_quiet();
bool is_quiet();

/// Four significant digits without an exponent: "139.6", "7.520", "12345". 0 gives "0".
/// `like`: the value whose magnitude decides the number of decimals, so that bounds match their
/// centre.
std::string four_digits(double value, double like);
std::string four_digits(double value);

/// "1 launch", "3 launches".
std::string counted(std::size_t n, std::string_view what);

}  // namespace scalemark
