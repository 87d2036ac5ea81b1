# Compile for Linux with Zig's C++ compiler. It brings its own C++ library, which is linked statically,
# and the symbols of any old C library. packaging/build.py sets the environment variables:
#   ZIG         path of the zig program
#   ZIG_TARGET  processor, system and oldest C library, such as x86_64-linux-gnu.2.17
set(CMAKE_SYSTEM_NAME Linux)
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "$ENV{ZIG_TARGET}")
set(CMAKE_CXX_COMPILER $ENV{ZIG} c++ -target $ENV{ZIG_TARGET})
# Zig's library does not declare stderr where nanobind expects it.
set(CMAKE_CXX_FLAGS_INIT "-include stdio.h -fno-sanitize=undefined")
set(CMAKE_CXX_ARCHIVE_CREATE "$ENV{ZIG} ar rcs <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "")
