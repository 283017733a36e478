# Compilers, warnings and link settings for every target. Choices of tools, never of features.
include(CTest)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM AND NOT BMGPU_SANITIZE)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                    -Wnon-virtual-dtor -Woverloaded-virtual)
if(BMGPU_WERROR)
  add_compile_options(-Werror)
endif()
if(BMGPU_SANITIZE)
  add_compile_options(-fsanitize=${BMGPU_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BMGPU_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC's manual: with a sanitizer this one warns of what is initialized. `dev` has it.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()
if(BMGPU_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # libFuzzer follows the branches of our libraries
endif()
add_compile_options(-fno-plt -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
