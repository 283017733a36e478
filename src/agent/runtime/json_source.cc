// Boost.JSON is used without its library: this is its one translation unit.
#include <boost/json/src.hpp>
