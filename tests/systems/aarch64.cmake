# CMake's toolchain for aarch64 Linux, with the host's Clang and the Debian of tests/systems/aarch64.sh, which sets STEPOP_AARCH64 to
# the folder that has it in root/.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_SYSROOT $ENV{STEPOP_AARCH64}/root)
find_program(CMAKE_C_COMPILER NAMES clang-19 REQUIRED)
find_program(CMAKE_CXX_COMPILER NAMES clang++-19 REQUIRED)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT -fuse-ld=lld-19)
endforeach()
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L $ENV{STEPOP_AARCH64}/libraries)

# Programs are the host's, libraries and headers those of the root and of pip's LibTorch.
set(CMAKE_FIND_ROOT_PATH $ENV{STEPOP_AARCH64}/packages)  # and the sysroot
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
# Without h5cc, which names the folders of the host.
set(HDF5_C_COMPILER_EXECUTABLE "")
set(CMAKE_INCLUDE_PATH /usr/include/hdf5/serial)
set(CMAKE_LIBRARY_PATH /usr/lib/aarch64-linux-gnu/hdf5/serial)
